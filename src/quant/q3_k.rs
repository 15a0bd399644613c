//! `q3_k`: 256 three-bit codes around 4 in 16 groups, each with a 6-bit scale around 32 under one f16 scale.

use super::block::{BlockFormat, CodedBlock, coded, f16_at, split_pairs};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Q3K, 110, 256, 16>("q3_k", 11);

struct Q3K;

impl CodedBlock<110, 256, 16> for Q3K {
    const CODES: Codes = Codes::B3;
    const AFFINE: bool = false;

    /// 32 bytes of third bits (bit `j` of byte `i` belongs to code `32 j + i`), 64 bytes of low bit pairs,
    /// 12 bytes of group scales, the block's scale.
    fn split(block: &[u8; 110], codes: &mut [i8; 256], groups: &mut [(f32, f32); 16]) {
        let scale = f16_at(block, 108);
        for (index, group) in groups.iter_mut().enumerate() {
            group.0 = scale * (f32::from(group_scale(&block[96..108], index)) - 32.0);
        }
        split_pairs(&block[32..96], codes);
        for (bit, codes) in codes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for (code, &thirds) in codes.iter_mut().zip(&block[..32]) {
                *code |= ((thirds >> bit & 1) << 2) as i8;
            }
        }
    }
}

/// The 6-bit scale of a group: its low nibble is in the first 8 bytes (groups 8.. in high nibbles),
/// its upper two bits are in the last 4 bytes, four groups a bit pair.
fn group_scale(bytes: &[u8], group: usize) -> u8 {
    let low = bytes[group % 8] >> (group / 8 * 4) & 15;
    let high = bytes[8 + group % 4] >> (group / 4 * 2) & 3;
    low | high << 4
}
