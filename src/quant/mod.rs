//! How weights are stored: the block formats of files, and the packed layouts that the kernels read; and how keys and
//! values are.
//! Knows nothing of file containers, operators or devices.
//!
//! A format is one file here and one row of [`BLOCK_FORMATS`]; nothing else in the crate lists formats.

mod block;
mod kv;
mod pack;
mod packed;
mod quantize;

mod bf16;
mod f16;
mod f32;
mod iq4_nl;
mod mxfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

#[cfg(test)]
mod tests;

pub use block::{BlockFormat, Dequantize, Quantize, Unpack};
pub use kv::{KV_BLOCK, KvType, quantize_kv};
pub use pack::{pack_rows, pack_rows_as, unpack_row, unpack_rows};
pub use packed::{Codes, PackedLayout, PackedRows};

/// Every block format, by ggml's type number.
pub static BLOCK_FORMATS: &[&BlockFormat] = &[
    &f32::FORMAT,
    &f16::FORMAT,
    &q4_0::FORMAT,
    &q4_1::FORMAT,
    &q5_0::FORMAT,
    &q5_1::FORMAT,
    &q8_0::FORMAT,
    &q2_k::FORMAT,
    &q3_k::FORMAT,
    &q4_k::FORMAT,
    &q5_k::FORMAT,
    &q6_k::FORMAT,
    &iq4_nl::FORMAT,
    &bf16::FORMAT,
    &mxfp4::FORMAT,
];

/// The format with this type number of ggml, as GGUF files write it.
#[must_use]
pub fn block_format_by_ggml_id(ggml_id: u32) -> Option<&'static BlockFormat> {
    BLOCK_FORMATS.iter().copied().find(|format| format.ggml_id == ggml_id)
}

/// The format with this name, e.g. `q4_0` (any case).
#[must_use]
pub fn block_format_by_name(name: &str) -> Option<&'static BlockFormat> {
    BLOCK_FORMATS.iter().copied().find(|format| format.name.eq_ignore_ascii_case(name))
}
