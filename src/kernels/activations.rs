//! Activations as the coded weights meet them: integers with a scale per 32 columns, or with one scale and one zero point
//! for a whole row, and the sums that zero points and biases are multiplied with. Knows no weight.

use crate::error::{Error, Result};

/// Columns that share an activation scale.
pub const BLOCK: usize = 32;
/// Extremes in flight.
const LANES: usize = 16;
/// Columns of the smallest group of weights.
const HALF: usize = 16;
/// Bits of the narrowest and widest codes of weights.
const NARROWEST_BITS: usize = 2;
const WIDEST_BITS: usize = 8;
/// The centre of the widest codes with a scale for each 16 columns, of 6 bits. Eight codes of activations times this fit 16 bits.
const WIDEST_CENTRE: i32 = 32;
/// Rows are padded with zeros to a multiple of this, the widest group of a layout.
const PADDING: usize = 128;
/// How much larger than the mean the square of a block's scale is where its rest is worth coding.
const OUTLIER: f32 = 3.0;
/// In place of a block: the row has no rest.
pub(super) const NO_REST: usize = usize::MAX;

/// Rows of activations as integers, `value = scale * code + shift`, in the widths that the instruction set's products read:
/// 8 bits, 16 bits, or both for weights of different widths. Buffers are kept between uses.
///
/// A few channels of a model have values many times those of the others, which take the 8 bits of their block for
/// themselves ("massive activations", Sun et al., 2024). So the rest of a row's block with the largest scale, what its codes
/// miss, is coded once more where that scale stands out, in a block at the end of the row. Half of what 8 bits lose is lost there.
#[derive(Debug, Default)]
pub struct QuantizedRows {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Columns as stored.
    pub(super) padded: usize,
    /// `|code| <= 127`; empty where nothing reads them. A row's rest lies in the block at `padded`: zeros if it has none.
    pub(super) narrow: Codes<i8>,
    /// `|code| <= 32767`; empty where nothing reads them.
    pub(super) wide: Codes<i16>,
    /// The block whose rest is coded, or [`NO_REST`], of each row; empty where there are no 8-bit codes.
    pub(super) rests: Vec<usize>,
    /// Of rows with one scale and one zero point, what is added to every value of a row; else empty.
    pub(super) shifts: Vec<f32>,
}

/// The codes of all rows in one width, each row [`QuantizedRows::stride`] long.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Codes<T> {
    /// `[rows, stride]`.
    pub(super) codes: Vec<T>,
    /// `[rows, stride / 32]`.
    pub(super) scales: Vec<f32>,
    /// Sum of the values of each 32 columns, `[rows, stride / 32]`.
    pub(super) totals: Vec<f32>,
    /// Sum of the values of each 16 columns, `[rows, stride / 16]`.
    pub(super) halves: Vec<f32>,
    /// Of each 16 columns, the sums of the codes of the first two of every four, and of the last two, times
    /// [`WIDEST_CENTRE`]; without meaning where codes have 16 bits. `[rows, stride / 16]`.
    pub(super) pairs: Vec<[i16; 2]>,
}

/// Where products find the activations of one width; index them as [`Codes`] says, codes by bytes.
pub(super) struct ActivationPointers {
    pub(super) codes: *const u8,
    pub(super) code_bytes: usize,
    pub(super) scales: *const f32,
    pub(super) totals: *const f32,
    pub(super) halves: *const f32,
    pub(super) pairs: *const [i16; 2],
}

/// What one row is quantized from and to; lengths as in [`QuantizedRows`].
pub(super) struct QuantizeRow<'a> {
    pub(super) values: &'a [f32],
    pub(super) narrow: Option<CodesRow<'a, i8>>,
    pub(super) wide: Option<CodesRow<'a, i16>>,
    pub(super) rest: Option<&'a mut usize>,
    /// Where the row gets one scale and one zero point; this is what its values exceed those of the codes by.
    pub(super) shift: Option<&'a mut f32>,
}

/// One row of [`Codes`].
pub(super) struct CodesRow<'a, T> {
    codes: &'a mut [T],
    scales: &'a mut [f32],
    totals: &'a mut [f32],
    halves: &'a mut [f32],
    pairs: &'a mut [[i16; 2]],
}

/// An integer that activations are rounded to.
pub(super) trait Code: Copy + Default + Into<i32> {
    /// The largest magnitude.
    const LARGEST: f32;
    /// From an integer of at most that magnitude.
    fn new(value: i32) -> Self;
}

impl Code for i8 {
    const LARGEST: f32 = 127.0;
    #[inline(always)]
    fn new(value: i32) -> Self {
        value as Self
    }
}

impl Code for i16 {
    const LARGEST: f32 = 32_767.0;
    #[inline(always)]
    fn new(value: i32) -> Self {
        value as Self
    }
}

impl<T: Code> Codes<T> {
    /// Makes room for so many codes, a multiple of 32.
    fn reshape(&mut self, len: usize) {
        self.codes.resize(len, T::default());
        self.scales.resize(len / BLOCK, 0.0);
        self.totals.resize(len / BLOCK, 0.0);
        self.halves.resize(len / HALF, 0.0);
        self.pairs.resize(len / HALF, [0; 2]);
    }

    fn bytes(&self) -> usize {
        let floats = self.scales.capacity() + self.totals.capacity() + self.halves.capacity();
        size_of::<T>() * self.codes.capacity() + 4 * (floats + self.pairs.capacity())
    }

    /// The value of code `at`.
    fn value(&self, at: usize) -> f64 {
        f64::from(self.codes[at].into()) * f64::from(self.scales[at / BLOCK])
    }

    fn pointers(&self) -> ActivationPointers {
        ActivationPointers {
            codes: self.codes.as_ptr().cast(),
            code_bytes: size_of::<T>(),
            scales: self.scales.as_ptr(),
            totals: self.totals.as_ptr(),
            halves: self.halves.as_ptr(),
            pairs: self.pairs.as_ptr(),
        }
    }

    /// The rows, each of `stride` codes; none where there are no codes.
    fn rows(&mut self, stride: usize) -> impl Iterator<Item = CodesRow<'_, T>> {
        let scales = self.scales.chunks_exact_mut((stride / BLOCK).max(1));
        let totals = self.totals.chunks_exact_mut((stride / BLOCK).max(1));
        let halves = self.halves.chunks_exact_mut((stride / HALF).max(1));
        let pairs = self.pairs.chunks_exact_mut((stride / HALF).max(1));
        let codes = self.codes.chunks_exact_mut(stride.max(1));
        let sums = scales.zip(totals).zip(halves.zip(pairs));
        codes.zip(sums).map(|(codes, ((scales, totals), (halves, pairs)))| CodesRow {
            codes,
            scales,
            totals,
            halves,
            pairs,
        })
    }
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
        let rests = size_of::<usize>() * self.rests.capacity();
        self.narrow.bytes() + self.wide.bytes() + rests + 4 * self.shifts.capacity()
    }

    /// The value that column `k` of row `n` stands for to weights that read 16 bits if `wide`.
    pub(super) fn value(&self, n: usize, k: usize, wide: bool) -> f64 {
        let at = n * self.stride() + k;
        let shift = self.shifts.get(n).copied().map_or(0.0, f64::from);
        if wide {
            return shift + self.wide.value(at);
        }
        let has_rest = self.rests[n] == k / BLOCK;
        let rest = if has_rest { self.narrow.value(n * self.stride() + self.padded + k % BLOCK) } else { 0.0 };
        shift + self.narrow.value(at) + rest
    }

    /// Codes from one row to the next: the columns as stored, and the rest.
    #[inline(always)]
    pub(super) fn stride(&self) -> usize {
        self.padded + BLOCK
    }

    /// Where products find the activations in 16 bits if `wide`, else in 8.
    #[inline(always)]
    pub(super) fn pointers(&self, wide: bool) -> ActivationPointers {
        if wide { self.wide.pointers() } else { self.narrow.pointers() }
    }

    /// Makes room for `rows` rows of `columns` columns, for products whose weights of at least `wide_from` bits read
    /// 16-bit activations; `whole` rows get one scale and one zero point.
    pub(super) fn reshape(&mut self, (rows, columns): (usize, usize), wide_from: usize, whole: bool) {
        let padded = columns.next_multiple_of(PADDING);
        (self.rows, self.columns, self.padded) = (rows, columns, padded);
        let (has_narrow, has_wide) = (wide_from > NARROWEST_BITS, wide_from <= WIDEST_BITS);
        self.narrow.reshape(if has_narrow { rows * self.stride() } else { 0 });
        self.wide.reshape(if has_wide { rows * self.stride() } else { 0 });
        self.rests.resize(if has_narrow { rows } else { 0 }, NO_REST);
        self.shifts.resize(if whole { rows } else { 0 }, 0.0);
    }

    /// The rows as separate jobs; `values` is `[rows, columns]`.
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
        let stride = self.stride();
        let (mut narrow, mut wide) = (self.narrow.rows(stride), self.wide.rows(stride));
        let (mut rests, mut shifts) = (self.rests.iter_mut(), self.shifts.iter_mut());
        let rows = values.chunks_exact(self.columns.max(1));
        Ok(rows.map(move |values| QuantizeRow {
            values,
            narrow: narrow.next(),
            wide: wide.next(),
            rest: rests.next(),
            shift: shifts.next(),
        }))
    }
}

/// Quantizes one row in every width it is wanted in. Rounds to nearest, ties to even; equal on every processor.
#[inline(always)]
pub(super) fn quantize_row(job: QuantizeRow<'_>) {
    if let Some(shift) = job.shift {
        let whole = WholeRow::new(job.values);
        *shift = whole.shift;
        if let Some(narrow) = job.narrow {
            whole.quantize(job.values, narrow);
        }
        if let Some(wide) = job.wide {
            whole.quantize(job.values, wide);
        }
        if let Some(rest) = job.rest {
            *rest = NO_REST;
        }
        return;
    }
    if let Some(mut narrow) = job.narrow {
        quantize_codes(job.values, &mut narrow);
        if let Some(rest) = job.rest {
            *rest = quantize_rest(job.values, &mut narrow);
        }
    }
    if let Some(mut wide) = job.wide {
        quantize_codes(job.values, &mut wide);
    }
}

#[inline(always)]
fn quantize_codes<T: Code>(values: &[f32], row: &mut CodesRow<'_, T>) {
    for index in 0..row.scales.len() {
        row.put(index, &block_of(values, index));
    }
}

/// Codes the rest of the block with the largest scale, the first of equals, if it stands out; answers which it is.
#[inline(always)]
fn quantize_rest(values: &[f32], row: &mut CodesRow<'_, i8>) -> usize {
    let n_blocks = row.scales.len() - 1;
    let (mut largest, mut index, mut squares) = (0.0, NO_REST, 0.0);
    for (block, &scale) in row.scales[..n_blocks].iter().enumerate() {
        squares += scale * scale;
        if scale > largest {
            (largest, index) = (scale, block);
        }
    }
    if index == NO_REST || largest * largest * n_blocks as f32 <= OUTLIER * squares {
        return NO_REST;
    }
    let mut rest = block_of(values, index);
    for (rest, &code) in rest.iter_mut().zip(&row.codes[index * BLOCK..]) {
        *rest -= largest * f32::from(code);
    }
    row.put(n_blocks, &rest);
    index
}

/// A block of values; zeros follow the last.
#[inline(always)]
fn block_of(values: &[f32], index: usize) -> [f32; BLOCK] {
    let from = values.get(index * BLOCK..).unwrap_or_default();
    from.first_chunk::<BLOCK>().copied().unwrap_or_else(|| {
        let mut padded = [0f32; BLOCK];
        for (to, from) in padded.iter_mut().zip(from) {
            *to = *from;
        }
        padded
    })
}

impl<T: Code> CodesRow<'_, T> {
    /// Quantizes `block` as block `index` of the row.
    #[inline(always)]
    fn put(&mut self, index: usize, block: &[f32; BLOCK]) {
        let scale = quantize_block(block, &mut self.codes[index * BLOCK..][..BLOCK]);
        self.sum(index, scale);
    }

    /// Notes the scale and the sums of block `index`, whose codes are there.
    #[inline(always)]
    fn sum(&mut self, index: usize, scale: f32) {
        let mut total = 0;
        for (half, codes) in (2 * index..).zip(self.codes[index * BLOCK..][..BLOCK].chunks_exact(HALF)) {
            let mut pairs = [0i32; 2];
            for four in codes.as_chunks::<4>().0 {
                pairs[0] += four[0].into() + four[1].into();
                pairs[1] += four[2].into() + four[3].into();
            }
            let sum = pairs[0] + pairs[1];
            self.pairs[half] = pairs.map(|pair| (pair * WIDEST_CENTRE) as i16);
            self.halves[half] = scale * sum as f32;
            total += sum;
        }
        (self.scales[index], self.totals[index]) = (scale, scale * total as f32);
    }
}

/// One scale and one zero point for a row, from its least and largest value: `x_q = clamp(round(x / s) + z, 0, 255)`
/// (Jacob et al., 2018). The codes are `x_q - 128`. The range is mapped to 1 to 255, so that no code is -128, whose
/// negative is no byte: some instruction sets take it.
struct WholeRow {
    scale: f32,
    inverse: f32,
    /// Added to a rounded value to make its code.
    zero: i32,
    /// What the row's values exceed those of the codes by.
    shift: f32,
}

impl WholeRow {
    #[inline(always)]
    fn new(values: &[f32]) -> Self {
        // Zero is a value of every row, so that it has an exact code. Extremes by lanes, so that this compiles to SIMD.
        let (mut lows, mut highs) = ([0f32; LANES], [0f32; LANES]);
        let (chunks, rest) = values.as_chunks::<LANES>();
        for values in chunks {
            for ((low, high), &value) in lows.iter_mut().zip(&mut highs).zip(values) {
                *low = if value < *low { value } else { *low };
                *high = if value > *high { value } else { *high };
            }
        }
        for ((low, high), &value) in lows.iter_mut().zip(&mut highs).zip(rest) {
            (*low, *high) = (low.min(value), high.max(value));
        }
        let (low, high) = (lows.into_iter().fold(0.0, f32::min), highs.into_iter().fold(0.0, f32::max));
        let scale = (high - low) / 254.0;
        let inverse = if scale > 0.0 { (1.0 / scale).min(f32::MAX) } else { 0.0 };
        let zero = rounded(-low * inverse) - 127;
        Self { scale, inverse, zero, shift: -scale * zero as f32 }
    }

    #[inline(always)]
    fn quantize<T: Code>(&self, values: &[f32], mut row: CodesRow<'_, T>) {
        for (code, value) in row.codes.iter_mut().zip(values) {
            *code = T::new(rounded(value * self.inverse).wrapping_add(self.zero).clamp(-127, 127));
        }
        // What pads a row meets no weight and counts in no sum.
        row.codes[values.len()..].fill(T::default());
        for index in 0..row.scales.len() {
            row.sum(index, self.scale);
        }
    }
}

/// The nearest whole number to one far below 2^22, ties to even.
#[inline(always)]
fn rounded(value: f32) -> i32 {
    // Adding 1.5 * 2^23 rounds to an integer in the low bits of the sum.
    const MAGIC: f32 = 12_582_912.0;
    ((value + MAGIC).to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32)
}

/// Writes the codes of a block and returns its scale. Branch-free, so that it compiles to SIMD.
#[inline(always)]
fn quantize_block<T: Code>(block: &[f32; BLOCK], codes: &mut [T]) -> f32 {
    // Magnitudes of floats are ordered as integers; an integer maximum may be taken in any order.
    let largest = block.iter().fold(0u32, |largest, value| largest.max(value.to_bits() & 0x7FFF_FFFF));
    let largest = f32::from_bits(largest);
    let inverse = if largest > 0.0 { T::LARGEST / largest } else { 0.0 };
    // An infinite inverse would make codes of a block of subnormals meaningless.
    let inverse = inverse.min(f32::MAX);
    for (code, value) in codes.iter_mut().zip(block) {
        *code = T::new(rounded(value * inverse));
    }
    largest / T::LARGEST
}
