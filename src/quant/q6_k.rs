//! `q6_k`: 256 six-bit codes around 32 in 16 groups, each with an 8-bit scale under one f16 scale.

use super::block::{BlockFormat, CodedBlock, coded, f16_at};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Q6K, 210, 256, 16>("q6_k", 14);

struct Q6K;

impl CodedBlock<210, 256, 16> for Q6K {
    const CODES: Codes = Codes::B6;
    const AFFINE: bool = false;

    /// 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 group scales, the block's scale. Each half of the
    /// block is four runs of 32 codes: nibbles of bytes 0..32 and 32..64, low ones first; bit pairs from the lowest.
    fn split(block: &[u8; 210], codes: &mut [i8; 256], groups: &mut [(f32, f32); 16]) {
        let scale = f16_at(block, 208);
        for (group, &of_group) in groups.iter_mut().zip(&block[192..208]) {
            group.0 = scale * f32::from(of_group.cast_signed());
        }
        let (lows, highs) = (block[..128].as_chunks::<64>().0, block[128..192].as_chunks::<32>().0);
        for ((codes, low), high) in codes.as_chunks_mut::<128>().0.iter_mut().zip(lows).zip(highs) {
            for i in 0..32 {
                codes[i] = ((low[i] & 15) | ((high[i] & 3) << 4)) as i8;
                codes[i + 32] = ((low[i + 32] & 15) | ((high[i] >> 2 & 3) << 4)) as i8;
                codes[i + 64] = ((low[i] >> 4) | ((high[i] >> 4 & 3) << 4)) as i8;
                codes[i + 96] = ((low[i + 32] >> 4) | ((high[i] >> 6) << 4)) as i8;
            }
        }
    }
}
