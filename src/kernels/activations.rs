//! Activations as the coded weights meet them: 8-bit integers with a scale per 32 columns, and the sums that zero
//! points and biases are multiplied with. Knows no weight.

use crate::error::{Error, Result};

/// Columns that share an activation scale.
pub const BLOCK: usize = 32;
/// Rows are padded with zeros to a multiple of this, the widest group of a layout.
const PADDING: usize = 128;

/// Rows of activations in int8, `value = scale * code` with `|code| <= 127`. Buffers are kept between uses.
#[derive(Debug, Default)]
pub struct QuantizedRows {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Columns as stored.
    pub(super) padded: usize,
    /// `[rows, padded]`.
    pub(super) codes: Vec<i8>,
    /// The codes in 16 bits, `[rows, padded]`; kept only for instruction sets that read them.
    pub(super) wide: Vec<i16>,
    /// `[rows, padded / 32]`.
    pub(super) scales: Vec<f32>,
    /// Sum of the codes of each 16 columns, `[rows, padded / 16]`.
    pub(super) sums: Vec<i32>,
}

/// What one row is quantized from and to; lengths as in [`QuantizedRows`].
pub(super) struct QuantizeRow<'a> {
    pub(super) values: &'a [f32],
    pub(super) codes: &'a mut [i8],
    pub(super) wide: Option<&'a mut [i16]>,
    pub(super) scales: &'a mut [f32],
    pub(super) sums: &'a mut [i32],
}

impl QuantizedRows {
    /// Rows held.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns, before padding.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.codes.capacity() + 2 * self.wide.capacity() + 4 * (self.scales.capacity() + self.sums.capacity())
    }

    /// The value that column `k` of row `n` stands for.
    pub(super) fn value(&self, n: usize, k: usize) -> f64 {
        let at = n * self.padded + k;
        f64::from(self.codes[at]) * f64::from(self.scales[at / BLOCK])
    }

    /// Makes room for `rows` rows of `columns` columns.
    pub(super) fn reshape(&mut self, rows: usize, columns: usize, keep_wide: bool) {
        let padded = columns.next_multiple_of(PADDING);
        (self.rows, self.columns, self.padded) = (rows, columns, padded);
        self.codes.resize(rows * padded, 0);
        self.wide.resize(if keep_wide { rows * padded } else { 0 }, 0);
        self.scales.resize(rows * padded / BLOCK, 0.0);
        self.sums.resize(rows * padded / 16, 0);
    }

    /// The rows `first..first + n` as separate jobs; `values` is `[rows, columns]`.
    ///
    /// # Errors
    /// `Internal` when `values` does not hold whole rows.
    pub(super) fn jobs<'a>(&'a mut self, values: &'a [f32]) -> Result<impl Iterator<Item = QuantizeRow<'a>>> {
        if values.len() != self.rows * self.columns {
            return Err(Error::internal(format!(
                "expected {} rows of {} activations, found {} values",
                self.rows,
                self.columns,
                values.len()
            )));
        }
        let padded = self.padded;
        let mut wide = self.wide.chunks_exact_mut(padded.max(1));
        let rows = values
            .chunks_exact(self.columns.max(1))
            .zip(self.codes.chunks_exact_mut(padded.max(1)))
            .zip(self.scales.chunks_exact_mut((padded / BLOCK).max(1)))
            .zip(self.sums.chunks_exact_mut((padded / 16).max(1)));
        Ok(rows.map(move |(((values, codes), scales), sums)| QuantizeRow {
            values,
            codes,
            wide: wide.next(),
            scales,
            sums,
        }))
    }
}

/// Quantizes one row. Rounds to nearest, ties to even; equal on every processor.
#[inline(always)]
pub(super) fn quantize_row(job: QuantizeRow<'_>) {
    let QuantizeRow { values, codes, wide, scales, sums } = job;
    for (index, codes) in codes.chunks_exact_mut(BLOCK).enumerate() {
        let from = values.get(index * BLOCK..).unwrap_or_default();
        let block = from.first_chunk::<BLOCK>().copied().unwrap_or_else(|| {
            let mut padded = [0f32; BLOCK];
            for (to, from) in padded.iter_mut().zip(from) {
                *to = *from;
            }
            padded
        });
        scales[index] = quantize_block(&block, codes);
        for (half, codes) in codes.chunks_exact(16).enumerate() {
            sums[2 * index + half] = codes.iter().map(|&code| i32::from(code)).sum();
        }
    }
    if let Some(wide) = wide {
        for (wide, &code) in wide.iter_mut().zip(codes.iter()) {
            *wide = i16::from(code);
        }
    }
}

/// Writes the codes of a block and returns its scale. Branch-free, so that it compiles to SIMD.
#[inline(always)]
fn quantize_block(block: &[f32; BLOCK], codes: &mut [i8]) -> f32 {
    // Magnitudes of floats are ordered as integers; an integer maximum may be taken in any order.
    let largest = block.iter().fold(0u32, |largest, value| largest.max(value.to_bits() & 0x7FFF_FFFF));
    let largest = f32::from_bits(largest);
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    // An infinite inverse would make codes of a block of subnormals meaningless.
    let inverse = inverse.min(f32::MAX);
    // Adding 1.5 * 2^23 rounds to an integer in the low bits of the sum.
    const MAGIC: f32 = 12_582_912.0;
    for (code, value) in codes.iter_mut().zip(block) {
        *code = ((value * inverse + MAGIC).to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32) as i8;
    }
    largest / 127.0
}
