//! `q4_k`: 256 nibbles in 8 groups, each with a 6-bit scale and a 6-bit minimum under two f16 ones.

use super::block::{BlockFormat, CodedBlock, coded, f16_at, split_nibbles};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Q4K, 144, 256, 8>("q4_k", 12);

struct Q4K;

impl CodedBlock<144, 256, 8> for Q4K {
    const CODES: Codes = Codes::B4;
    const AFFINE: bool = true;

    /// The block's scale and minimum, 12 bytes of group scales and minima, 128 bytes of nibbles:
    /// 32 bytes hold a run of 32 codes in low nibbles and the next run in high ones.
    fn split(block: &[u8; 144], codes: &mut [i8; 256], groups: &mut [(f32, f32); 8]) {
        split_groups(block, groups);
        for (codes, nibbles) in codes.as_chunks_mut::<64>().0.iter_mut().zip(block[16..].as_chunks::<32>().0) {
            split_nibbles(nibbles, codes);
        }
    }
}

/// Scales and biases of the 8 groups, from the first 16 bytes of a `q4_k` or `q5_k` block.
pub(super) fn split_groups(block: &[u8], groups: &mut [(f32, f32); 8]) {
    let (scale, min) = (f16_at(block, 0), f16_at(block, 2));
    for (index, group) in groups.iter_mut().enumerate() {
        let (of_scale, of_min) = group_scale_and_min(&block[4..16], index);
        *group = (scale * f32::from(of_scale), -(min * f32::from(of_min)));
    }
}

/// 6-bit scale and minimum of a group. Bytes 0..4 and 4..8 hold those of groups 0..4; their spare upper bits and
/// the nibbles of bytes 8..12 hold those of groups 4..8.
fn group_scale_and_min(bytes: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        return (bytes[group] & 63, bytes[group + 4] & 63);
    }
    let nibbles = bytes[group + 4];
    ((nibbles & 15) | (bytes[group - 4] >> 6) << 4, (nibbles >> 4) | (bytes[group] >> 6) << 4)
}
