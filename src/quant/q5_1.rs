//! `q5_1`: 32 five-bit codes with one f16 scale and one f16 minimum.

use super::block::{BlockFormat, CodedBlock, bounds, coded, f16_at, f16_bytes, inverse};
use super::packed::Codes;
use super::q5_0::{join_five_bits, split_five_bits};

pub(super) static FORMAT: BlockFormat = coded::<Q5_1, 24, 32, 1>("q5_1", 7).with_quantize(quantize);

struct Q5_1;

impl CodedBlock<24, 32, 1> for Q5_1 {
    const CODES: Codes = Codes::B5;
    const AFFINE: bool = true;

    fn split(block: &[u8; 24], codes: &mut [i8; 32], groups: &mut [(f32, f32); 1]) {
        groups[0] = (f16_at(block, 0), f16_at(block, 2));
        split_five_bits([block[4], block[5], block[6], block[7]], &block[8..], codes);
    }
}

fn quantize(values: &[f32], bytes: &mut [u8]) {
    for (values, block) in values.as_chunks::<32>().0.iter().zip(bytes.as_chunks_mut::<24>().0) {
        let (min, max) = bounds(values);
        let scale = (max - min) / 31.0;
        let inverse = inverse(scale);
        block[..2].copy_from_slice(&f16_bytes(scale));
        block[2..4].copy_from_slice(&f16_bytes(min));
        join_five_bits(values, &mut block[4..], |value| (((value - min) * inverse + 0.5) as u8).min(31));
    }
}
