//! `q2_k`: 256 two-bit codes in 16 groups, each with a 4-bit scale and a 4-bit minimum under two f16 ones.

use super::block::{BlockFormat, CodedBlock, coded, f16_at, split_pairs};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Q2K, 84, 256, 16>("q2_k", 10);

struct Q2K;

impl CodedBlock<84, 256, 16> for Q2K {
    const CODES: Codes = Codes::B2;
    const AFFINE: bool = true;

    /// 16 bytes of group scale (low nibble) and minimum, 64 bytes of codes, the block's scale and minimum.
    fn split(block: &[u8; 84], codes: &mut [i8; 256], groups: &mut [(f32, f32); 16]) {
        let (scale, min) = (f16_at(block, 80), f16_at(block, 82));
        for (group, &byte) in groups.iter_mut().zip(&block[..16]) {
            *group = (scale * f32::from(byte & 15), -(min * f32::from(byte >> 4)));
        }
        split_pairs(&block[16..80], codes);
    }
}
