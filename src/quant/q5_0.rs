//! `q5_0`: 32 five-bit codes around 16 with one f16 scale; the fifth bits lie in a 32-bit word of their own.

use super::block::{BlockFormat, CodedBlock, coded, extreme, f16_at, f16_bytes, inverse};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Q5_0, 22, 32, 1>("q5_0", 6).with_quantize(quantize);

struct Q5_0;

impl CodedBlock<22, 32, 1> for Q5_0 {
    const CODES: Codes = Codes::B5;
    const AFFINE: bool = false;

    fn split(block: &[u8; 22], codes: &mut [i8; 32], groups: &mut [(f32, f32); 1]) {
        groups[0].0 = f16_at(block, 0);
        split_five_bits([block[2], block[3], block[4], block[5]], &block[6..], codes);
    }
}

/// Codes from their low nibbles and the word of fifth bits, bit `k` belonging to code `k`.
pub(super) fn split_five_bits(fifths: [u8; 4], nibbles: &[u8], codes: &mut [i8; 32]) {
    super::block::split_nibbles(nibbles, codes);
    let fifths = u32::from_le_bytes(fifths);
    for (k, code) in codes.iter_mut().enumerate() {
        *code |= ((fifths >> k & 1) << 4) as i8;
    }
}

/// The inverse of [`split_five_bits`].
pub(super) fn join_five_bits(values: &[f32; 32], bytes: &mut [u8], code: impl Fn(f32) -> u8) {
    let mut fifths = 0;
    for (k, &value) in values.iter().enumerate() {
        fifths |= u32::from(code(value) >> 4) << k;
    }
    bytes[..4].copy_from_slice(&fifths.to_le_bytes());
    super::block::join_nibbles(values, &mut bytes[4..], code);
}

fn quantize(values: &[f32], bytes: &mut [u8]) {
    for (values, block) in values.as_chunks::<32>().0.iter().zip(bytes.as_chunks_mut::<22>().0) {
        let scale = extreme(values) / -16.0;
        let inverse = inverse(scale);
        block[..2].copy_from_slice(&f16_bytes(scale));
        join_five_bits(values, &mut block[2..], |value| ((value * inverse + 16.5) as u8).min(31));
    }
}
