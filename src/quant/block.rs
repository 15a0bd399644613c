//! What a block format is, and how one format file becomes a row of the table: a format only says how a block
//! splits into codes and group scales; decoding to floats follows from that. Knows no packed planes.

use std::fmt;

use half::f16;

use super::packed::{Codes, PackedLayout};
use crate::error::{Error, Result};

/// Decodes whole blocks to floats.
pub type Dequantize = fn(bytes: &[u8], out: &mut [f32]);
/// Encodes floats to whole blocks.
pub type Quantize = fn(values: &[f32], bytes: &mut [u8]);
/// Decodes whole blocks to codes and `(scale, bias)` pairs.
pub type Unpack = fn(bytes: &[u8], codes: &mut [i8], groups: &mut [(f32, f32)]) -> Result<()>;

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
    pub dequantize: Dequantize,
    /// Encodes whole blocks, rounding to nearest as ggml does; `None` where only decoding is known.
    pub quantize: Option<Quantize>,
    /// Decodes whole blocks to integer codes and one `(scale, bias)` per group of the layout
    /// (`value = scale * code + bias`), for formats that are packed as codes.
    /// Fails only where a value of the file cannot be expressed in the layout.
    pub unpack: Option<Unpack>,
}

impl BlockFormat {
    /// Bytes that `elements` take in a file, or `None` when they are no whole blocks or the count overflows.
    #[must_use]
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        let (len, bytes) = (u64::try_from(self.block_len).ok()?, u64::try_from(self.block_bytes).ok()?);
        if !elements.is_multiple_of(len) {
            return None;
        }
        (elements / len).checked_mul(bytes)
    }

    /// Decodes `bytes` to `out.len()` floats; fails unless the bytes are exactly the blocks of that many elements.
    pub fn decode(&self, bytes: &[u8], out: &mut [f32]) -> Result<()> {
        self.check_lengths(bytes.len(), out.len())?;
        (self.dequantize)(bytes, out);
        Ok(())
    }

    /// Encodes `values`, rounding to nearest as ggml does; fails when they are no whole blocks,
    /// or for a format that only decodes.
    pub fn encode(&self, values: &[f32]) -> Result<Vec<u8>> {
        let Some(quantize) = self.quantize else {
            return Err(Error::unsupported(format!("weights cannot be quantized to {}, only read from it", self.name)));
        };
        let mut bytes = vec![0; values.len() / self.block_len * self.block_bytes];
        self.check_lengths(bytes.len(), values.len())?;
        quantize(values, &mut bytes);
        Ok(bytes)
    }

    fn check_lengths(&self, bytes: usize, elements: usize) -> Result<()> {
        let blocks = elements / self.block_len;
        if !elements.is_multiple_of(self.block_len) || blocks.checked_mul(self.block_bytes) != Some(bytes) {
            return Err(Error::malformed(format!(
                "expected {} elements in {} bytes for each block of {}, found {elements} elements and {bytes} bytes",
                self.block_len, self.block_bytes, self.name
            )));
        }
        Ok(())
    }

    /// The same format, able to encode.
    pub(super) const fn with_quantize(mut self, quantize: Quantize) -> Self {
        self.quantize = Some(quantize);
        self
    }
}

impl fmt::Debug for BlockFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockFormat({})", self.name)
    }
}

impl PartialEq for BlockFormat {
    fn eq(&self, other: &Self) -> bool {
        self.ggml_id == other.ggml_id
    }
}

impl Eq for BlockFormat {}

/// A format whose blocks are `LEN` integer codes in `BYTES` bytes, with a scale for each of `GROUPS` equal groups.
pub(super) trait CodedBlock<const BYTES: usize, const LEN: usize, const GROUPS: usize> {
    /// Width of the codes.
    const CODES: Codes;
    /// Whether groups have a bias of their own, rather than the bias that follows from the zero code.
    const AFFINE: bool;

    /// Splits one block. The bias (second of a pair) is read only from affine formats.
    fn split(block: &[u8; BYTES], codes: &mut [i8; LEN], groups: &mut [(f32, f32); GROUPS]);

    /// Fails where the scales cannot be written as f16 without losing what the block says; may replace them where
    /// that changes no value.
    fn check(_codes: &[i8; LEN], _groups: &mut [(f32, f32); GROUPS]) -> Result<()> {
        Ok(())
    }
}

/// The row of a coded format.
pub(super) const fn coded<F, const BYTES: usize, const LEN: usize, const GROUPS: usize>(
    name: &'static str,
    ggml_id: u32,
) -> BlockFormat
where
    F: CodedBlock<BYTES, LEN, GROUPS>,
{
    BlockFormat {
        name,
        ggml_id,
        block_len: LEN,
        block_bytes: BYTES,
        layout: PackedLayout::Coded { codes: F::CODES, group: LEN / GROUPS, affine: F::AFFINE },
        dequantize: dequantize_coded::<F, BYTES, LEN, GROUPS>,
        quantize: None,
        unpack: Some(unpack_coded::<F, BYTES, LEN, GROUPS>),
    }
}

/// The row of a format of plain floats.
pub(super) const fn dense(
    name: &'static str,
    ggml_id: u32,
    block_bytes: usize,
    layout: PackedLayout,
    dequantize: Dequantize,
) -> BlockFormat {
    BlockFormat { name, ggml_id, block_len: 1, block_bytes, layout, dequantize, quantize: None, unpack: None }
}

fn dequantize_coded<F, const BYTES: usize, const LEN: usize, const GROUPS: usize>(bytes: &[u8], out: &mut [f32])
where
    F: CodedBlock<BYTES, LEN, GROUPS>,
{
    let (mut codes, mut groups) = ([0; LEN], [(0.0, 0.0); GROUPS]);
    for (block, out) in bytes.as_chunks().0.iter().zip(out.as_chunks_mut::<LEN>().0) {
        F::split(block, &mut codes, &mut groups);
        let in_groups = codes.chunks_exact(LEN / GROUPS).zip(out.chunks_exact_mut(LEN / GROUPS));
        for ((codes, out), &(scale, bias)) in in_groups.zip(&groups) {
            for (&code, out) in codes.iter().zip(out) {
                // Not `scale * code + bias` for both: with the zero code taken off first, the product is rounded once.
                *out = if F::AFFINE {
                    scale * f32::from(code) + bias
                } else {
                    scale * (i32::from(code) - F::CODES.zero()) as f32
                };
            }
        }
    }
}

fn unpack_coded<F, const BYTES: usize, const LEN: usize, const GROUPS: usize>(
    bytes: &[u8],
    codes: &mut [i8],
    groups: &mut [(f32, f32)],
) -> Result<()>
where
    F: CodedBlock<BYTES, LEN, GROUPS>,
{
    let blocks = bytes.as_chunks().0.iter();
    let parts = codes.as_chunks_mut().0.iter_mut().zip(groups.as_chunks_mut().0);
    for (block, (codes, groups)) in blocks.zip(parts) {
        F::split(block, codes, groups);
        F::check(codes, groups)?;
        if !F::AFFINE {
            for (scale, bias) in groups {
                *bias = -(F::CODES.zero() as f32) * *scale;
            }
        }
    }
    Ok(())
}

/// The f16 at byte `offset` of a block, as f32. Zero past its end, which no format reads.
pub(super) fn f16_at(block: &[u8], offset: usize) -> f32 {
    let bytes = block.get(offset..offset + 2).and_then(|bytes| bytes.first_chunk::<2>());
    f16::from_le_bytes(bytes.copied().unwrap_or_default()).to_f32()
}

/// Writes the low nibbles of `bytes` to the first half of `codes` and the high nibbles to the second half.
pub(super) fn split_nibbles(bytes: &[u8], codes: &mut [i8]) {
    let (low, high) = codes.split_at_mut(codes.len() / 2);
    for ((&byte, low), high) in bytes.iter().zip(low).zip(high) {
        *low = (byte & 15) as i8;
        *high = (byte >> 4) as i8;
    }
}

/// Writes the bit pairs of 64 bytes to 256 codes: each 32 bytes hold four runs of 32 codes, from the lowest pair up.
pub(super) fn split_pairs(bytes: &[u8], codes: &mut [i8; 256]) {
    for (bytes, codes) in bytes.chunks_exact(32).zip(codes.chunks_exact_mut(128)) {
        for (pair, codes) in codes.chunks_exact_mut(32).enumerate() {
            for (code, &byte) in codes.iter_mut().zip(bytes) {
                *code = (byte >> (2 * pair) & 3) as i8;
            }
        }
    }
}

/// Replaces each 4-bit code by the value it stands for.
pub(super) fn look_up(values: &[i8; 16], codes: &mut [i8]) {
    for code in codes {
        *code = values[usize::from(code.cast_unsigned() & 15)];
    }
}

/// The inverse of [`split_nibbles`]: `code(value)` of the first half in low nibbles, of the second in high ones.
pub(super) fn join_nibbles(values: &[f32; 32], bytes: &mut [u8], code: impl Fn(f32) -> u8) {
    let (low, high) = values.split_at(16);
    for ((byte, &low), &high) in bytes.iter_mut().zip(low).zip(high) {
        *byte = (code(low) & 15) | ((code(high) & 15) << 4);
    }
}

/// The element farthest from zero, with its sign; of equals the first.
pub(super) fn extreme(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |extreme: f32, &value| if value.abs() > extreme.abs() { value } else { extreme })
}

/// Smallest and largest element.
pub(super) fn bounds(values: &[f32]) -> (f32, f32) {
    values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)))
}

/// `1 / scale`, or 0 for a scale of 0.
pub(super) fn inverse(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { 1.0 / scale }
}

/// The bytes of a scale stored as f16.
pub(super) fn f16_bytes(value: f32) -> [u8; 2] {
    f16::from_f32(value).to_le_bytes()
}
