//! `q5_k`: as `q4_k`, with a fifth bit of each code in 32 bytes of their own.

use super::block::{BlockFormat, CodedBlock, coded, split_nibbles};
use super::packed::Codes;
use super::q4_k::split_groups;

pub(super) static FORMAT: BlockFormat = coded::<Q5K, 176, 256, 8>("q5_k", 13);

struct Q5K;

impl CodedBlock<176, 256, 8> for Q5K {
    const CODES: Codes = Codes::B5;
    const AFFINE: bool = true;

    /// The groups as in `q4_k`, 32 bytes of fifth bits (bit `j` of byte `i` belongs to code `32 j + i`), 128 of nibbles.
    fn split(block: &[u8; 176], codes: &mut [i8; 256], groups: &mut [(f32, f32); 8]) {
        split_groups(block, groups);
        for (codes, nibbles) in codes.as_chunks_mut::<64>().0.iter_mut().zip(block[48..].as_chunks::<32>().0) {
            split_nibbles(nibbles, codes);
        }
        for (bit, codes) in codes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for (code, &fifths) in codes.iter_mut().zip(&block[16..48]) {
                *code |= ((fifths >> bit & 1) << 4) as i8;
            }
        }
    }
}
