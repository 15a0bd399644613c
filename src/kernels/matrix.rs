//! A packed weight matrix as the CPU kernels read it. Checks once that its planes are as long as the layout says,
//! so that the kernels need not check again.

use crate::error::{Error, Result};
use crate::kernels::float16::f16_to_f32;
use crate::quant::{Codes, PackedLayout, PackedRows};

/// Rows of one weight, `[rows, columns]`, in a packed layout.
#[derive(Debug)]
pub struct CpuMatrix {
    layout: PackedLayout,
    rows: usize,
    columns: usize,
    low: Vec<u32>,
    high: Vec<u32>,
    scales: Vec<u32>,
    row_sums: Vec<f32>,
}

/// Collects the parts of a [`CpuMatrix`] in row order, into memory reserved once.
#[derive(Debug)]
pub struct CpuMatrixBuilder {
    matrix: CpuMatrix,
    filled: usize,
}

impl CpuMatrixBuilder {
    /// Reserves the planes of a matrix `[rows, columns]`.
    ///
    /// # Errors
    /// `OutOfMemory` when the planes cannot be had; `InvalidArgument` for a size or group no layout has.
    pub fn new(layout: PackedLayout, rows: usize, columns: usize) -> Result<Self> {
        if !is_supported(layout, rows, columns) {
            return Err(Error::invalid_argument(format!(
                "a weight of {rows} rows and {columns} columns is not supported on this platform"
            )));
        }
        if let PackedLayout::Coded { group, .. } = layout
            && !matches!(group, 16 | 32 | 64 | 128)
            && group != columns.next_multiple_of(32)
        {
            return Err(Error::invalid_argument(format!(
                "expected groups of 16, 32, 64 or 128 columns or of a whole row, found {group} of {columns}"
            )));
        }
        let [low, high, scales] = plane_words(layout, rows, columns);
        let (low, high, scales) = (reserve(low)?, reserve(high)?, reserve(scales)?);
        let matrix = CpuMatrix { layout, rows, columns, low, high, scales, row_sums: Vec::new() };
        Ok(Self { matrix, filled: 0 })
    }

    /// Appends the next rows.
    ///
    /// # Errors
    /// `Internal` when the part has another layout or width, does not follow whole tiles, or has planes of other
    /// lengths than its layout says.
    pub fn push(&mut self, part: &PackedRows) -> Result<()> {
        let matrix = &mut self.matrix;
        if part.layout != matrix.layout || part.columns != matrix.columns {
            return Err(Error::internal(format!(
                "expected rows of {} columns in layout {}, found {} in {}",
                matrix.columns,
                matrix.layout.name(),
                part.columns,
                part.layout.name()
            )));
        }
        let filled = self.filled.checked_add(part.rows).filter(|&filled| filled <= matrix.rows);
        let coded = matches!(part.layout, PackedLayout::Coded { .. });
        let (Some(filled), false) = (filled, coded && !self.filled.is_multiple_of(4)) else {
            return Err(Error::internal(format!(
                "{} rows do not follow {} of {}",
                part.rows, self.filled, matrix.rows
            )));
        };
        let expected = plane_words(part.layout, part.rows, part.columns);
        let found = [part.low.len(), part.high.len(), part.scales.len()];
        if expected != found {
            return Err(Error::internal(format!("expected planes of {expected:?} words, found {found:?}")));
        }
        matrix.low.extend_from_slice(&part.low);
        matrix.high.extend_from_slice(&part.high);
        matrix.scales.extend_from_slice(&part.scales);
        self.filled = filled;
        Ok(())
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> PackedLayout {
        self.matrix.layout
    }

    /// Rows given so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.filled
    }

    /// Bytes reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.matrix.bytes()
    }

    /// The matrix; fails unless every row was given.
    pub fn finish(self) -> Result<CpuMatrix> {
        if self.filled != self.matrix.rows {
            return Err(Error::internal(format!("expected {} rows, found {}", self.matrix.rows, self.filled)));
        }
        Ok(self.matrix)
    }
}

/// Whether the sizes of the planes, and the bits of the widest, can be counted.
fn is_supported(layout: PackedLayout, rows: usize, columns: usize) -> bool {
    // Bytes of a dense value, or bits of the widest code.
    let factor = match layout {
        PackedLayout::F32 => 4,
        PackedLayout::F16 => 2,
        PackedLayout::Coded { .. } => 8,
    };
    let padded = rows.checked_next_multiple_of(4).zip(columns.checked_next_multiple_of(128));
    let size = padded.and_then(|(rows, columns)| rows.checked_mul(columns)?.checked_mul(factor));
    rows > 0 && columns > 0 && size.is_some()
}

fn plane_words(layout: PackedLayout, rows: usize, columns: usize) -> [usize; 3] {
    layout.plane_bytes(rows, columns).map(|bytes| bytes.div_ceil(4))
}

fn reserve(words: usize) -> Result<Vec<u32>> {
    let mut plane = Vec::new();
    plane.try_reserve_exact(words).map_err(|_| {
        Error::out_of_memory(format!("{} bytes for a weight could not be had", words.saturating_mul(4)))
    })?;
    Ok(plane)
}

impl CpuMatrix {
    /// Bytes of a matrix `[rows, columns]`; `None` where this platform cannot have one of the size.
    #[must_use]
    pub fn bytes_of(layout: PackedLayout, rows: usize, columns: usize) -> Option<u64> {
        let words = is_supported(layout, rows, columns).then(|| plane_words(layout, rows, columns))?;
        Some(words.iter().map(|words| *words as u64 * 4).sum())
    }

    /// A matrix of one part that holds all its rows.
    pub fn new(part: &PackedRows) -> Result<Self> {
        let mut builder = CpuMatrixBuilder::new(part.layout, part.rows, part.columns)?;
        builder.push(part)?;
        builder.finish()
    }

    /// A dense matrix of floats, row-major.
    pub fn from_f32(rows: usize, columns: usize, values: &[f32]) -> Result<Self> {
        let low = values.iter().map(|value| value.to_bits()).collect();
        Self::new(&PackedRows { layout: PackedLayout::F32, rows, columns, low, high: Vec::new(), scales: Vec::new() })
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> PackedLayout {
        self.layout
    }

    /// Whether the weights are integer codes, which are multiplied with quantized activations.
    #[must_use]
    pub fn is_coded(&self) -> bool {
        matches!(self.layout, PackedLayout::Coded { .. })
    }

    /// Rows (output features).
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns (input features), before padding.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Tiles of four rows; the last may be partly filled.
    #[must_use]
    pub fn tiles(&self) -> usize {
        self.rows.div_ceil(4)
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        4 * (self.low.capacity() + self.high.capacity() + self.scales.capacity() + self.row_sums.capacity())
    }

    /// The sums of the rows; empty unless they were given.
    #[must_use]
    pub fn row_sums(&self) -> &[f32] {
        &self.row_sums
    }

    /// Keeps the sums of the rows, as products with whole rows of activations need them.
    pub fn set_row_sums(&mut self, sums: Vec<f32>) {
        self.row_sums = sums;
    }

    /// The planes `(low or dense, high, scales)`.
    pub(super) fn planes(&self) -> (&[u32], &[u32], &[u32]) {
        (&self.low, &self.high, &self.scales)
    }

    /// Writes the values of `row` to `out`; fails when there is no such row or `out` is not `columns` long.
    pub fn row(&self, row: usize, out: &mut [f32]) -> Result<()> {
        if row >= self.rows || out.len() != self.columns {
            return Err(Error::internal(format!(
                "row {row} of {} values was asked of a weight of {} rows and {} columns",
                out.len(),
                self.rows,
                self.columns
            )));
        }
        match self.layout {
            PackedLayout::F32 => self.row_f32(row, out),
            PackedLayout::F16 => self.row_f16(row, out),
            PackedLayout::Coded { codes, group, affine } => self.row_coded(row, out, codes, group, affine),
        }
        Ok(())
    }

    fn row_f32(&self, row: usize, out: &mut [f32]) {
        for (out, &bits) in out.iter_mut().zip(&self.low[row * self.columns..]) {
            *out = f32::from_bits(bits);
        }
    }

    fn row_f16(&self, row: usize, out: &mut [f32]) {
        let words = &self.low[row * self.columns.div_ceil(2)..];
        for (out, &word) in out.chunks_mut(2).zip(words) {
            for (half, out) in out.iter_mut().enumerate() {
                *out = f16_to_f32((word >> (16 * half)) as u16);
            }
        }
    }

    fn row_coded(&self, row: usize, out: &mut [f32], codes: Codes, group: usize, affine: bool) {
        let padded = self.layout.padded_columns(self.columns);
        let (tile, lane) = (row / 4, row % 4);
        let zero = codes.zero() as f32;
        for (index, out) in out.chunks_mut(group).enumerate() {
            let at = tile * padded / group + index;
            let (scale, bias) = if affine {
                let word = self.scales[4 * at + lane];
                (f16_to_f32(word as u16), f16_to_f32((word >> 16) as u16))
            } else {
                let scale = f16_to_f32((self.scales[2 * at + lane / 2] >> (16 * (lane % 2))) as u16);
                (scale, -zero * scale)
            };
            for (column, out) in out.iter_mut().enumerate() {
                let code = self.code(codes, tile * padded + group * index + column, lane);
                *out = scale * code as f32 + bias;
            }
        }
    }

    /// The code of row `lane` of a tile; `at` counts columns through all tiles.
    fn code(&self, codes: Codes, at: usize, lane: usize) -> i32 {
        let field = |plane: &[u32], bits: usize| -> u32 {
            // Columns a word holds of one row; byte `j` holds columns `j`, `4 + j`, … from the lowest bits up.
            let span = 32 / bits;
            let word = plane[at / span * 4 + lane];
            let within = at % span;
            (word >> (8 * (within % 4) + bits * (within / 4))) & ((1 << bits) - 1)
        };
        let (low_bits, high_bits) = codes.planes();
        let low = field(&self.low, low_bits);
        if codes == Codes::B8 {
            return i32::from(low as u8 as i8);
        }
        let high = if high_bits == 0 { 0 } else { field(&self.high, high_bits) };
        (low | high << low_bits) as i32
    }
}
