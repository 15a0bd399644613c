//! Conversions between half and single precision, without tables. Exact where the result exists.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// The value of f16 `bits`, infinities and NaN included.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7FFF) << 13;
    let sign = u32::from(bits & 0x8000) << 16;
    // Moving the exponent's bias by 112 also normalizes subnormals.
    let finite = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let special = magnitude | 0x7F80_0000;
    let value = if magnitude >= 0x0F80_0000 { special } else { finite.to_bits() };
    f32::from_bits(value | sign)
}

/// Rounds `from` to f16, ties to even; what is too large becomes infinite.
/// Converts as many values as both slices hold.
pub fn store_f16(from: &[f32], to: &mut [u16]) {
    let len = to.len().min(from.len());
    to[..len].reinterpret_cast_mut::<f16>().convert_from_f32_slice(&from[..len]);
}

#[cfg(test)]
mod tests {
    use super::f16_to_f32;

    #[test]
    fn every_half_converts_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let expected = half::f16::from_bits(bits).to_f32();
            let found = f16_to_f32(bits);
            if expected.is_nan() {
                assert!(found.is_nan(), "{bits:#06x}");
            } else {
                assert_eq!(expected.to_bits(), found.to_bits(), "{bits:#06x}");
            }
        }
    }
}
