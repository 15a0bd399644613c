//! `q4_1`: 32 nibbles with one f16 scale and one f16 minimum.

use super::block::{BlockFormat, CodedBlock, bounds, coded, f16_at, f16_bytes, inverse, join_nibbles, split_nibbles};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Q4_1, 20, 32, 1>("q4_1", 3).with_quantize(quantize);

struct Q4_1;

impl CodedBlock<20, 32, 1> for Q4_1 {
    const CODES: Codes = Codes::B4;
    const AFFINE: bool = true;

    fn split(block: &[u8; 20], codes: &mut [i8; 32], groups: &mut [(f32, f32); 1]) {
        groups[0] = (f16_at(block, 0), f16_at(block, 2));
        split_nibbles(&block[4..], codes);
    }
}

fn quantize(values: &[f32], bytes: &mut [u8]) {
    for (values, block) in values.as_chunks::<32>().0.iter().zip(bytes.as_chunks_mut::<20>().0) {
        let (min, max) = bounds(values);
        let scale = (max - min) / 15.0;
        let inverse = inverse(scale);
        block[..2].copy_from_slice(&f16_bytes(scale));
        block[2..4].copy_from_slice(&f16_bytes(min));
        join_nibbles(values, &mut block[4..], |value| (((value - min) * inverse + 0.5) as u8).min(15));
    }
}
