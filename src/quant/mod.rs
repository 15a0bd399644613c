//! How weights are stored: the block formats of files, and the packed layouts that the kernels read.
//! Knows nothing of file containers, operators or devices.

mod packed;

pub use packed::{Codes, PackedLayout, PackedRows};

use crate::error::Result;

/// A weight format as files store it: rows of blocks of `block_len` elements in `block_bytes` bytes.
/// Plain floats are blocks of one element.
pub struct BlockFormat {
    /// ggml's name in lower case, e.g. `q4_0`.
    pub name: &'static str,
    /// ggml's type number, as GGUF writes it.
    pub ggml_id: u32,
    /// Elements in a block.
    pub block_len: usize,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// The layout the kernels read this format in.
    pub layout: PackedLayout,
    /// Decodes whole blocks: `bytes.len() / block_bytes * block_len == out.len()`.
    pub dequantize: fn(bytes: &[u8], out: &mut [f32]),
    /// Decodes one block to integer codes and one `(scale, bias)` per group of the layout
    /// (`value = scale * code + bias`), for formats that are packed as codes.
    /// Fails only where a value of the file cannot be expressed in the layout.
    pub unpack: Option<fn(block: &[u8], codes: &mut [i8], groups: &mut [(f32, f32)]) -> Result<()>>,
}
