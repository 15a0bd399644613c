//! Row-wise arithmetic: norms, activations, rotary positions. Plain loops without branches, which the compiler turns
//! into SIMD where they are instantiated for an instruction set ([`super::table`]).

/// 1.5 * 2^23: added to a value far below 2^22, it leaves the nearest whole number, ties to even, in the low bits of the sum.
pub(super) const ROUNDER: f32 = 12_582_912.0;

/// `e^x`, within two units in the last place; saturates at the ends of the normal range.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.3, 88.3);
    let shifted = x * std::f32::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    // ln 2 in two parts, so that the product with n is exact in the first.
    let r = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4_f32;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let value = (p * r) * r + r + 1.0;
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32).wrapping_add(127);
    value * f32::from_bits((exponent as u32) << 23)
}

/// `tanh(x)`, within a few units in the last place of 1.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let e = exp(2.0 * x.clamp(-15.0, 15.0));
    (e - 1.0) / (e + 1.0)
}

/// The unary activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// `x / (1 + e^-x)`.
    Silu,
    /// GELU by its tanh formula.
    GeluTanh,
    /// GELU by the error function.
    GeluErf,
    /// `max(x, 0)`.
    Relu,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
}

/// The error function, absolute error below 2e-7.
#[inline(always)]
fn erf(x: f32) -> f32 {
    // Abramowitz and Stegun 7.1.26.
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let p = 1.061_405_4_f32;
    let p = p * t - 1.453_152_1;
    let p = p * t + 1.421_413_8;
    let p = p * t - 0.284_496_72;
    let p = p * t + 0.254_829_6;
    (1.0 - p * t * exp(-a * a)).copysign(x)
}

impl Unary {
    #[inline(always)]
    fn apply(self, values: &mut [f32]) {
        match self {
            Self::Silu => values.iter_mut().for_each(|x| *x /= 1.0 + exp(-*x)),
            Self::GeluTanh => values.iter_mut().for_each(|x| {
                let inner = 0.797_884_6 * (*x + 0.044_715 * *x * *x * *x);
                *x *= 0.5 * (1.0 + tanh(inner));
            }),
            Self::GeluErf => values.iter_mut().for_each(|x| {
                *x *= 0.5 * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2));
            }),
            Self::Relu => values.iter_mut().for_each(|x| *x = x.max(0.0)),
            Self::Sigmoid => values.iter_mut().for_each(|x| *x = 1.0 / (1.0 + exp(-*x))),
            Self::Tanh => values.iter_mut().for_each(|x| *x = tanh(*x)),
        }
    }
}

/// `values = op(values)`.
#[inline(always)]
pub(super) fn unary(op: Unary, values: &mut [f32]) {
    op.apply(values);
}

/// `dst += other`.
#[inline(always)]
pub(super) fn add(dst: &mut [f32], other: &[f32]) {
    for (dst, other) in dst.iter_mut().zip(other) {
        *dst += other;
    }
}

/// `dst *= other`.
#[inline(always)]
pub(super) fn mul(dst: &mut [f32], other: &[f32]) {
    for (dst, other) in dst.iter_mut().zip(other) {
        *dst *= other;
    }
}

/// Sums of `f` of the values, in 16 interleaved partial sums.
#[inline(always)]
fn sum_of(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0f32; 16];
    let (blocks, rest) = x.as_chunks::<16>();
    for block in blocks {
        for (sum, x) in sums.iter_mut().zip(block) {
            *sum += f(*x);
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += f(*x);
    }
    let mut width = 8;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

/// `dst = x / rms(x) * weight`, `rms = sqrt(mean(x^2) + eps)`.
#[inline(always)]
pub(super) fn rms_norm(x: &[f32], weight: &[f32], eps: f32, dst: &mut [f32]) {
    let factor = 1.0 / (sum_of(x, |x| x * x) / x.len() as f32 + eps).sqrt();
    for ((dst, x), weight) in dst.iter_mut().zip(x).zip(weight) {
        *dst = x * factor * weight;
    }
}

/// `dst = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias`; without a bias where it is empty.
#[inline(always)]
pub(super) fn layer_norm(x: &[f32], (weight, bias): (&[f32], &[f32]), eps: f32, dst: &mut [f32]) {
    let mean = sum_of(x, |x| x) / x.len() as f32;
    let variance = sum_of(x, |x| (x - mean) * (x - mean)) / x.len() as f32;
    let factor = 1.0 / (variance + eps).sqrt();
    for ((dst, x), weight) in dst.iter_mut().zip(x).zip(weight) {
        *dst = (x - mean) * factor * weight;
    }
    for (dst, bias) in dst.iter_mut().zip(bias) {
        *dst += bias;
    }
}

/// `dst = softmax(x)`.
#[inline(always)]
pub(super) fn softmax(x: &[f32], dst: &mut [f32]) {
    let largest = x.iter().fold(f32::NEG_INFINITY, |largest, &x| if x > largest { x } else { largest });
    if largest == f32::NEG_INFINITY {
        dst.fill(0.0);
        return;
    }
    for (dst, x) in dst.iter_mut().zip(x) {
        *dst = exp(x - largest);
    }
    let factor = 1.0 / sum_of(dst, |x| x);
    for dst in dst {
        *dst *= factor;
    }
}

/// Rotates the first values of a head in place by `turns`, (cos, sin) of each pair: neighbours are a pair when
/// `interleaved`, else values as far apart as there are pairs.
#[inline(always)]
pub(super) fn rotate(head: &mut [f32], turns: &[f32], interleaved: bool) {
    let turns = turns.as_chunks::<2>().0;
    let rotated = &mut head[..2 * turns.len()];
    if interleaved {
        for (pair, [cos, sin]) in rotated.as_chunks_mut::<2>().0.iter_mut().zip(turns) {
            *pair = [pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos];
        }
        return;
    }
    let (low, high) = rotated.split_at_mut(turns.len());
    for ((low, high), [cos, sin]) in low.iter_mut().zip(high).zip(turns) {
        (*low, *high) = (*low * cos - *high * sin, *low * sin + *high * cos);
    }
}

#[cfg(test)]
mod tests {
    use super::{Unary, erf, exp, tanh};

    #[test]
    fn exp_is_within_two_ulps_over_its_range() {
        let mut worst = 0.0f64;
        let mut x = -87.0f32;
        while x < 88.0 {
            let expected = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) - expected).abs() / expected);
            x += 0.001_37;
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst}");
        assert!(exp(f32::NEG_INFINITY) < 1.3e-38);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn tanh_and_erf_match_known_values() {
        for (x, expected) in [(0.0, 0.0), (0.5, 0.462_117_16), (-2.0, -0.964_027_6), (20.0, 1.0)] {
            assert!((tanh(x) - expected).abs() < 1e-6, "tanh {x}");
        }
        for (x, expected) in [(0.0, 0.0), (0.5, 0.520_499_9), (-1.0, -0.842_700_8), (4.0, 1.0)] {
            assert!((erf(x) - expected).abs() < 3e-7, "erf {x}");
        }
    }

    type Formula = fn(f64) -> f64;

    #[test]
    fn activations_match_their_formulas() {
        let x = [-3.0f32, -0.5, 0.0, 0.25, 2.0];
        let formulas: [(Unary, Formula); 4] = [
            (Unary::Silu, |x| x / (1.0 + (-x).exp())),
            (Unary::GeluTanh, |x| {
                0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
            }),
            (Unary::Relu, |x| x.max(0.0)),
            (Unary::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ];
        for (op, formula) in formulas {
            let mut found = x;
            op.apply(&mut found);
            for (x, found) in x.iter().zip(found) {
                assert!((f64::from(found) - formula(f64::from(*x))).abs() < 1e-6, "{op:?}({x}) = {found}");
            }
        }
    }
}
