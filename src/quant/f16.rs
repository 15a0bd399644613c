//! `f16`: IEEE half precision floats.

use half::f16;

use super::block::{BlockFormat, dense};
use super::packed::PackedLayout;

pub(super) static FORMAT: BlockFormat = dense("f16", 1, 2, PackedLayout::F16, dequantize).with_quantize(quantize);

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (bytes, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = f16::from_le_bytes(*bytes).to_f32();
    }
}

fn quantize(values: &[f32], bytes: &mut [u8]) {
    for (value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
        *bytes = f16::from_f32(*value).to_le_bytes();
    }
}
