//! `q8_0`: 32 signed bytes with one f16 scale.

use super::block::{BlockFormat, CodedBlock, coded, extreme, f16_at, f16_bytes, inverse};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Q8_0, 34, 32, 1>("q8_0", 8).with_quantize(quantize);

struct Q8_0;

impl CodedBlock<34, 32, 1> for Q8_0 {
    const CODES: Codes = Codes::B8;
    const AFFINE: bool = false;

    fn split(block: &[u8; 34], codes: &mut [i8; 32], groups: &mut [(f32, f32); 1]) {
        groups[0].0 = f16_at(block, 0);
        for (code, &byte) in codes.iter_mut().zip(&block[2..]) {
            *code = byte.cast_signed();
        }
    }
}

fn quantize(values: &[f32], bytes: &mut [u8]) {
    for (values, block) in values.as_chunks::<32>().0.iter().zip(bytes.as_chunks_mut::<34>().0) {
        let scale = extreme(values).abs() / 127.0;
        let inverse = inverse(scale);
        block[..2].copy_from_slice(&f16_bytes(scale));
        for (&value, byte) in values.iter().zip(&mut block[2..]) {
            *byte = ((value * inverse).round() as i8).cast_unsigned();
        }
    }
}
