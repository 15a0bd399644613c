//! `mxfp4`: 32 four-bit floats (sign, 2 exponent bits, 1 fraction bit) under a power of two.
//! Packed as twice those floats, which are small integers, in 8 bits.

use super::block::{BlockFormat, CodedBlock, coded, look_up, split_nibbles};
use super::packed::Codes;
use crate::error::{Error, Result};

pub(super) static FORMAT: BlockFormat = coded::<Mxfp4, 17, 32, 1>("mxfp4", 39);

/// Twice the value of each four-bit float.
const VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

struct Mxfp4;

impl CodedBlock<17, 32, 1> for Mxfp4 {
    const CODES: Codes = Codes::B8;
    const AFFINE: bool = false;

    fn split(block: &[u8; 17], codes: &mut [i8; 32], groups: &mut [(f32, f32); 1]) {
        groups[0].0 = half_of_power(block[0]);
        split_nibbles(&block[1..], codes);
        look_up(&VALUES, codes);
    }

    /// A power of two outside f16's range would become zero or infinity; where all codes are zero it does not matter.
    fn check(codes: &[i8; 32], groups: &mut [(f32, f32); 1]) -> Result<()> {
        let scale = groups[0].0;
        if codes.iter().all(|&code| code == 0) {
            groups[0].0 = 0.0;
        } else if !(f32::exp2(-24.0)..=f32::exp2(15.0)).contains(&scale) {
            return Err(Error::unsupported(format!(
                "expected mxfp4 scales from 2^-23 to 2^16, which f16 can hold halved, found 2^{}",
                (scale.log2() + 1.0).round()
            )));
        }
        Ok(())
    }
}

/// Half of `2^(exponent - 127)`: the half makes up for the doubled values.
fn half_of_power(exponent: u8) -> f32 {
    match exponent {
        // Subnormal: 2^-128 and 2^-127.
        0 => f32::from_bits(0x0020_0000),
        1 => f32::from_bits(0x0040_0000),
        exponent => f32::from_bits(u32::from(exponent - 1) << 23),
    }
}
