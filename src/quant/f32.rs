//! `f32`: plain 32-bit floats.

use super::block::{BlockFormat, dense};
use super::packed::PackedLayout;

pub(super) static FORMAT: BlockFormat = dense("f32", 0, 4, PackedLayout::F32, dequantize).with_quantize(quantize);

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (bytes, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = f32::from_le_bytes(*bytes);
    }
}

fn quantize(values: &[f32], bytes: &mut [u8]) {
    for (value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
        *bytes = value.to_le_bytes();
    }
}
