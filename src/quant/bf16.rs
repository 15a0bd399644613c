//! `bf16`: the upper half of 32-bit floats. Its range exceeds f16's, so the kernels read it as f32, exactly.

use half::bf16;

use super::block::{BlockFormat, dense};
use super::packed::PackedLayout;

pub(super) static FORMAT: BlockFormat = dense("bf16", 30, 2, PackedLayout::F32, dequantize).with_quantize(quantize);

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (bytes, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
    }
}

fn quantize(values: &[f32], bytes: &mut [u8]) {
    for (value, bytes) in values.iter().zip(bytes.as_chunks_mut().0) {
        *bytes = bf16::from_f32(*value).to_le_bytes();
    }
}
