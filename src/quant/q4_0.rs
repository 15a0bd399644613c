//! `q4_0`: 32 nibbles around 8 with one f16 scale.

use super::block::{BlockFormat, CodedBlock, coded, extreme, f16_at, f16_bytes, inverse, join_nibbles, split_nibbles};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Q4_0, 18, 32, 1>("q4_0", 2).with_quantize(quantize);

struct Q4_0;

impl CodedBlock<18, 32, 1> for Q4_0 {
    const CODES: Codes = Codes::B4;
    const AFFINE: bool = false;

    fn split(block: &[u8; 18], codes: &mut [i8; 32], groups: &mut [(f32, f32); 1]) {
        groups[0].0 = f16_at(block, 0);
        split_nibbles(&block[2..], codes);
    }
}

fn quantize(values: &[f32], bytes: &mut [u8]) {
    for (values, block) in values.as_chunks::<32>().0.iter().zip(bytes.as_chunks_mut::<18>().0) {
        let scale = extreme(values) / -8.0;
        let inverse = inverse(scale);
        block[..2].copy_from_slice(&f16_bytes(scale));
        join_nibbles(values, &mut block[2..], |value| ((value * inverse + 8.5) as u8).min(15));
    }
}
