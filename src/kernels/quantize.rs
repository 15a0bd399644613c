//! How activations become the integers of [`QuantizedRows`](super::activations::QuantizedRows). Knows no weight.

#![allow(unsafe_code)]

use super::activations::{BLOCK, Code, CodesRow, HALF, NO_REST, QuantizeRow, WIDEST_CENTRE};
use super::elementwise::ROUNDER;
use super::isa::Isa;

/// Extremes in flight.
const LANES: usize = 16;
/// How much larger than the mean the square of a block's scale is where its rest is worth coding.
const OUTLIER: f32 = 3.0;

/// Quantizes one row in every form it is wanted in. Rounds to nearest, ties to even; equal on every processor.
///
/// # Safety
/// The processor has `I`.
#[inline(always)]
pub(super) unsafe fn quantize_row<I: Isa>(job: QuantizeRow<'_>) {
    let QuantizeRow { values, narrow, wide, rest, pairs, shift } = job;
    let whole = shift.map(|shift| {
        let whole = WholeRow::new(values);
        *shift = whole.shift;
        whole
    });
    if let Some(mut narrow) = narrow {
        let block = match &whole {
            Some(whole) => {
                whole.quantize(values, &mut narrow);
                NO_REST
            }
            // SAFETY: the caller's promise.
            None => unsafe {
                quantize_codes::<I, _>(values, &mut narrow);
                quantize_rest::<I>(values, &mut narrow)
            },
        };
        if let Some(rest) = rest {
            *rest = block;
        }
        if let Some(pairs) = pairs {
            sum_pairs(narrow.codes, pairs);
        }
    }
    if let Some(mut wide) = wide {
        match whole {
            Some(whole) => whole.quantize(values, &mut wide),
            // SAFETY: the caller's promise.
            None => unsafe { quantize_codes::<I, _>(values, &mut wide) },
        }
    }
}

/// # Safety
/// The processor has `I`.
#[inline(always)]
unsafe fn quantize_codes<I: Isa, T: Code>(values: &[f32], row: &mut CodesRow<'_, T>) {
    let blocks = Blocks::new(values);
    for index in 0..row.scales.len() {
        // SAFETY: the caller's promise.
        unsafe { row.put::<I>(index, blocks.block(index)) };
    }
}

/// Codes the rest of the block with the largest scale, the first of equals, if it stands out; answers which it is.
///
/// # Safety
/// The processor has `I`.
#[inline(always)]
unsafe fn quantize_rest<I: Isa>(values: &[f32], row: &mut CodesRow<'_, i8>) -> usize {
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
    let mut rest = [0.0; BLOCK];
    for ((rest, value), &code) in rest.iter_mut().zip(Blocks::new(values).block(index)).zip(&row.codes[index * BLOCK..])
    {
        *rest = value - largest * f32::from(code);
    }
    // SAFETY: the caller's promise.
    unsafe { row.put::<I>(n_blocks, &rest) };
    index
}

/// Sums codes as [`QuantizedRows::pairs`](super::activations::QuantizedRows::pairs) says. Four codes in a word, so that this compiles to SIMD.
#[inline(always)]
fn sum_pairs(codes: &[i8], pairs: &mut [[i16; 2]]) {
    for (pair, codes) in pairs.iter_mut().zip(codes.as_chunks::<HALF>().0) {
        let mut sums = [[0i32; 4]; 2];
        for (i, four) in codes.as_chunks::<4>().0.iter().enumerate() {
            let word = i32::from_le_bytes(four.map(i8::cast_unsigned));
            sums[0][i] = ((word << 24) >> 24) + ((word << 16) >> 24);
            sums[1][i] = ((word << 8) >> 24) + (word >> 24);
        }
        *pair = sums.map(|sums| (sums.iter().sum::<i32>() * WIDEST_CENTRE) as i16);
    }
}

/// A row in blocks. They are lent: the copy of a block is a call in WebAssembly.
struct Blocks<'a> {
    whole: &'a [[f32; BLOCK]],
    /// What is left of the row, and zeros.
    last: [f32; BLOCK],
}

impl<'a> Blocks<'a> {
    #[inline(always)]
    fn new(values: &'a [f32]) -> Self {
        let (whole, rest) = values.as_chunks();
        let mut last = [0.0; BLOCK];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        Self { whole, last }
    }

    /// A block; zeros follow the last.
    #[inline(always)]
    fn block(&self, index: usize) -> &[f32; BLOCK] {
        match self.whole.get(index) {
            Some(block) => block,
            None if index == self.whole.len() => &self.last,
            None => &[0.0; BLOCK],
        }
    }
}

impl<T: Code> CodesRow<'_, T> {
    /// Quantizes `block` as block `index` of the row.
    ///
    /// # Safety
    /// The processor has `I`.
    #[inline(always)]
    unsafe fn put<I: Isa>(&mut self, index: usize, block: &[f32; BLOCK]) {
        if let Some(codes) = self.codes.as_chunks_mut().0.get_mut(index) {
            // SAFETY: the caller's promise.
            let (scale, sums) = unsafe { I::quantize32(block, codes) };
            self.note(index, scale, sums);
        }
    }

    /// Notes the scale of block `index` and the sums of its halves.
    #[inline(always)]
    fn note(&mut self, index: usize, scale: f32, sums: [i32; 2]) {
        if let Some(halves) = self.halves.as_chunks_mut().0.get_mut(index) {
            *halves = sums.map(|sum| scale * sum as f32);
        }
        (self.scales[index], self.totals[index]) = (scale, scale * sums[0].wrapping_add(sums[1]) as f32);
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
    fn quantize<T: Code>(&self, values: &[f32], row: &mut CodesRow<'_, T>) {
        for (code, value) in row.codes.iter_mut().zip(values) {
            *code = T::new(rounded(value * self.inverse).wrapping_add(self.zero).clamp(-127, 127));
        }
        // What pads a row meets no weight and counts in no sum.
        row.codes[values.len()..].fill(T::default());
        for index in 0..row.scales.len() {
            let sums = row.codes.as_chunks().0.get(index).map_or([0; 2], half_sums);
            row.note(index, self.scale, sums);
        }
    }
}

/// The nearest whole number to one far below 2^22, ties to even.
#[inline(always)]
fn rounded(value: f32) -> i32 {
    ((value + ROUNDER).to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32)
}

/// Writes the codes of a block; answers its scale and the sums of its halves' codes: what [`Isa::quantize32`] does.
#[inline(always)]
pub(super) fn quantize_block<T: Code>(block: &[f32; BLOCK], codes: &mut [T; BLOCK]) -> (f32, [i32; 2]) {
    // Magnitudes of floats are ordered as integers; an integer maximum may be taken in any order.
    let largest = block.iter().fold(0u32, |largest, value| largest.max(value.to_bits() & 0x7FFF_FFFF));
    let (scale, inverse) = scale_of::<T>(f32::from_bits(largest));
    for (code, value) in codes.iter_mut().zip(block) {
        *code = T::new(rounded(value * inverse));
    }
    (scale, half_sums(codes))
}

/// The scale of a block with this largest magnitude, and what its values are multiplied with. No number if it is not finite.
#[inline(always)]
pub(super) fn scale_of<T: Code>(largest: f32) -> (f32, f32) {
    if largest.is_nan() || largest == f32::INFINITY {
        return (f32::NAN, 0.0);
    }
    let inverse = if largest > 0.0 { T::LARGEST / largest } else { 0.0 };
    // An infinite inverse would make codes of a block of subnormals meaningless.
    (largest / T::LARGEST, inverse.min(f32::MAX))
}

#[inline(always)]
fn half_sums<T: Code>(codes: &[T; BLOCK]) -> [i32; 2] {
    let (first, second) = codes.split_at(HALF);
    [first, second].map(|codes| codes.iter().map(|&code| code.into()).sum())
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, quantize_block, sum_pairs};

    /// What no native kernel reads: sums by pairs, and codes of 16 bits.
    #[test]
    fn pairs_and_wide_codes_are_sums_and_roundings() {
        let values: [f32; BLOCK] = std::array::from_fn(|i| (i as f32 * 0.7).sin() * 3.0);
        let (mut narrow, mut wide) = ([0i8; BLOCK], [0i16; BLOCK]);
        let (narrow_scale, narrow_sums) = quantize_block(&values, &mut narrow);
        let (wide_scale, wide_sums) = quantize_block(&values, &mut wide);
        for (i, value) in values.iter().enumerate() {
            assert!((value - narrow_scale * f32::from(narrow[i])).abs() <= 0.501 * narrow_scale, "{value}");
            assert!((value - wide_scale * f32::from(wide[i])).abs() <= 0.51 * wide_scale, "{value}");
        }
        let mut pairs = [[0i16; 2]; 2];
        sum_pairs(&narrow, &mut pairs);
        for half in 0..2 {
            let codes = &narrow[16 * half..][..16];
            let sum_of = |places: [usize; 2]| {
                (0..16).filter(|i| places.contains(&(i % 4))).map(|i| i32::from(codes[i])).sum::<i32>()
            };
            assert_eq!(pairs[half].map(i32::from), [32 * sum_of([0, 1]), 32 * sum_of([2, 3])]);
            assert_eq!(narrow_sums[half], sum_of([0, 1]) + sum_of([2, 3]));
            assert_eq!(wide_sums[half], wide[16 * half..][..16].iter().map(|&code| i32::from(code)).sum::<i32>());
        }
    }

    #[test]
    fn a_block_that_is_not_finite_has_no_scale() {
        for value in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let mut values = [1.0; BLOCK];
            values[9] = value;
            assert!(quantize_block(&values, &mut [0i8; BLOCK]).0.is_nan(), "{value}");
        }
    }
}
