//! Rounds rows of floats to integer codes: affine groups whose scale and bias keep the squared error small, or whole
//! rows with one symmetric scale. Knows layouts and nothing of where the floats come from.

use half::f16;

use super::packed::{Codes, PackedLayout};
use crate::error::{Error, Result};

/// Sums in flight, so that loops over a group become SIMD.
const LANES: usize = 8;

/// How the scale and bias of a group are searched.
struct Search {
    /// The largest code, counted from 0.
    top: f32,
    /// What is taken off a stored code: 128 for signed bytes.
    offset: f32,
    /// By which share of the range either end is drawn in for the first rounding: values beyond it are clamped, and
    /// the others get finer steps, which pays the more the fewer codes there are.
    shrinks: &'static [f32],
    /// How often the best line is fitted anew to the codes it gives.
    rounds: usize,
}

impl Search {
    fn new(codes: Codes) -> Self {
        let (shrinks, rounds): (&[f32], _) = match codes {
            Codes::B2 => (&[0.0, 0.06, 0.12, 0.18, 0.24], 4),
            Codes::B3 => (&[0.0, 0.04, 0.08, 0.13, 0.18], 4),
            Codes::B4 => (&[0.0, 0.03, 0.06, 0.1], 3),
            Codes::B5 | Codes::B6 => (&[0.0, 0.015], 2),
            Codes::B8 => (&[0.0], 1),
        };
        let offset = if codes == Codes::B8 { 128.0 } else { 0.0 };
        Self { top: ((1u32 << codes.bits()) - 1) as f32, offset, shrinks, rounds }
    }
}

/// The least-squares line through codes and values: `value = scale * code + bias`, values and bias relative to the
/// group's mean.
#[derive(Clone, Copy)]
struct Line {
    scale: f32,
    bias: f32,
    /// What the line takes off the sum of squares.
    gain: f32,
}

/// Rounds a row to the codes and groups of `layout`; `codes` and `groups` are those of the padded row, zeroed.
///
/// Fails for values that are not finite or whose scales are beyond f16, and for layouts that are only read.
pub(super) fn quantize_row(
    layout: PackedLayout,
    values: &[f32],
    codes: &mut [i8],
    groups: &mut [(f32, f32)],
) -> Result<()> {
    match layout {
        PackedLayout::Coded { codes: width, group: 32, affine: true } => affine::<32>(width, values, codes, groups),
        PackedLayout::Coded { codes: width, group: 64, affine: true } => affine::<64>(width, values, codes, groups),
        PackedLayout::Coded { codes: width, group: 128, affine: true } => affine::<128>(width, values, codes, groups),
        PackedLayout::Coded { codes: Codes::B8, group, affine: false } => symmetric(group, values, codes, groups),
        _ => Err(Error::internal(format!("weights are not quantized to {}", layout.name()))),
    }
}

fn affine<const N: usize>(width: Codes, values: &[f32], codes: &mut [i8], groups: &mut [(f32, f32)]) -> Result<()> {
    if !values.len().is_multiple_of(N) {
        return Err(Error::internal(format!("expected columns in whole groups of {N}, found {}", values.len())));
    }
    let search = Search::new(width);
    let parts = values.as_chunks::<N>().0.iter().zip(codes.as_chunks_mut::<N>().0).zip(groups);
    for ((values, codes), group) in parts {
        *group = affine_group(&search, values, codes)?;
    }
    Ok(())
}

/// Writes the codes of a group and answers its scale and bias, which f16 holds exactly.
fn affine_group<const N: usize>(search: &Search, values: &[f32; N], codes: &mut [i8; N]) -> Result<(f32, f32)> {
    let mean = sum(values) / N as f32;
    let mut centered = [0f32; N];
    let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
    for (centered, values) in centered.as_chunks_mut::<LANES>().0.iter_mut().zip(values.as_chunks::<LANES>().0) {
        let lanes = centered.iter_mut().zip(values).zip(low.iter_mut().zip(&mut high));
        for ((centered, value), (low, high)) in lanes {
            let value = value - mean;
            *centered = value;
            *low = if value < *low { value } else { *low };
            *high = if value > *high { value } else { *high };
        }
    }
    let line = fit(search, &centered, (low.into_iter().fold(0.0, f32::min), high.into_iter().fold(0.0, f32::max)));
    // What f16 makes of the scale moves the bias that fits best, and both move the codes.
    let scale = to_f16(line.scale);
    if scale == 0.0 {
        // All values are equal, or as good as.
        return finite(0.0, to_f16(mean));
    }
    let mean_code = -line.bias / line.scale;
    let bias = to_f16(mean - scale * (mean_code - search.offset));
    let (inverse, zero) = (1.0 / scale, bias - scale * search.offset);
    for (code, value) in codes.iter_mut().zip(values) {
        *code = (rounded((value - zero) * inverse, search.top) - search.offset) as i8;
    }
    finite(scale, bias)
}

/// The best line of the search for values around zero that lie within `low..=high`.
fn fit<const N: usize>(search: &Search, values: &[f32; N], (low, high): (f32, f32)) -> Line {
    let mut best = Line { scale: 0.0, bias: 0.0, gain: 0.0 };
    for shrink in search.shrinks {
        let scale = (high - low) * (1.0 - 2.0 * shrink) / search.top;
        let line = line_of(values, (scale, low + (high - low) * shrink), search.top);
        if line.gain > best.gain {
            best = line;
        }
    }
    for _ in 0..search.rounds {
        let line = line_of(values, (best.scale, best.bias), search.top);
        // Each round can only gain, but for rounding.
        if !(line.gain > best.gain) {
            break;
        }
        best = line;
    }
    best
}

/// Rounds the values with a scale and a bias and fits the line to the codes.
#[inline(always)]
fn line_of<const N: usize>(values: &[f32; N], (scale, bias): (f32, f32), top: f32) -> Line {
    let inverse = 1.0 / scale;
    let (mut codes, mut squares, mut products) = ([0f32; LANES], [0f32; LANES], [0f32; LANES]);
    for values in values.as_chunks::<LANES>().0 {
        let lanes = values.iter().zip(&mut codes).zip(squares.iter_mut().zip(&mut products));
        for ((value, codes), (squares, products)) in lanes {
            let code = rounded((value - bias) * inverse, top);
            *codes += code;
            *squares += code * code;
            *products += code * value;
        }
    }
    let (codes, squares, products) = (sum(&codes), sum(&squares), sum(&products));
    let mean = codes / N as f32;
    // The values sum to zero, so the products are the covariance.
    let variance = squares - codes * mean;
    if !(variance > 0.0) {
        return Line { scale: 0.0, bias: 0.0, gain: 0.0 };
    }
    let scale = products / variance;
    Line { scale, bias: -scale * mean, gain: products * scale }
}

/// The nearest whole number in `0..=top`, ties to even; 0 for no number. `top` is far below 2^22.
#[inline(always)]
fn rounded(value: f32, top: f32) -> f32 {
    // Adding and taking away 1.5 * 2^23 rounds, and compiles to SIMD everywhere.
    const MAGIC: f32 = 12_582_912.0;
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < top { value } else { top };
    (value + MAGIC) - MAGIC
}

/// The sum of a multiple of [`LANES`] values.
fn sum(values: &[f32]) -> f32 {
    let mut sums = [0f32; LANES];
    for values in values.as_chunks::<LANES>().0 {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
    sums.iter().sum()
}

/// One scale for each `group` values around zero, codes within +-127.
fn symmetric(group: usize, values: &[f32], codes: &mut [i8], groups: &mut [(f32, f32)]) -> Result<()> {
    let parts = values.chunks(group.max(1)).zip(codes.chunks_mut(group.max(1))).zip(groups);
    for ((values, codes), pair) in parts {
        let largest =
            values.iter().fold(0f32, |largest, value| if value.abs() > largest { value.abs() } else { largest });
        let scale = to_f16(largest / 127.0);
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        for (code, value) in codes.iter_mut().zip(values) {
            *code = (rounded(value * inverse + 127.0, 254.0) - 127.0) as i8;
        }
        *pair = finite(scale, 0.0)?;
        if !values.iter().all(|value| value.is_finite()) {
            return Err(not_finite());
        }
    }
    Ok(())
}

fn to_f16(value: f32) -> f32 {
    f16::from_f32(value).to_f32()
}

fn finite(scale: f32, bias: f32) -> Result<(f32, f32)> {
    if scale.is_finite() && bias.is_finite() { Ok((scale, bias)) } else { Err(not_finite()) }
}

fn not_finite() -> Error {
    Error::unsupported("expected finite weights with scales within f16 (at most 65504) to quantize, found others")
}
