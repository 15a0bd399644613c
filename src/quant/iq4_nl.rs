//! `iq4_nl`: 32 nibbles that index 16 unevenly spaced values, with one f16 scale. Packed as those values in 8 bits.

use super::block::{BlockFormat, CodedBlock, coded, f16_at, look_up, split_nibbles};
use super::packed::Codes;

pub(super) static FORMAT: BlockFormat = coded::<Iq4Nl, 18, 32, 1>("iq4_nl", 20);

const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

struct Iq4Nl;

impl CodedBlock<18, 32, 1> for Iq4Nl {
    const CODES: Codes = Codes::B8;
    const AFFINE: bool = false;

    fn split(block: &[u8; 18], codes: &mut [i8; 32], groups: &mut [(f32, f32); 1]) {
        groups[0].0 = f16_at(block, 0);
        split_nibbles(&block[2..], codes);
        look_up(&VALUES, codes);
    }
}
