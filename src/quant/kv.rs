//! How keys and values are stored in a cache. Knows no cache, no kernel and no device.

use crate::error::Error;
use half::f16;
use std::str::FromStr;

/// Elements of a head that share a scale in [`KvType::Q8`].
pub const KV_BLOCK: usize = 32;

/// Element type of the key/value cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KvType {
    /// 16-bit floats.
    #[default]
    F16,
    /// 32-bit floats.
    F32,
    /// Signed bytes: the largest magnitude of a block of [`KV_BLOCK`] elements is 127, and kept as an f32.
    Q8,
}

impl KvType {
    /// The name in reports and of kernels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::Q8 => "q8",
        }
    }

    /// Bytes of the key, or of the value, of one head at one position.
    #[must_use]
    pub fn row_bytes(self, head_dim: usize) -> usize {
        let [elements, scales] = self.row_parts(head_dim);
        elements.saturating_add(scales)
    }

    /// Of these bytes, those of the elements and those of scales, which lie behind the elements of all heads and positions
    /// where a cache is one buffer. Bytes come in eights, their scales in pairs.
    #[must_use]
    pub fn row_parts(self, head_dim: usize) -> [usize; 2] {
        match self {
            Self::F16 => [head_dim.saturating_mul(2), 0],
            Self::F32 => [head_dim.saturating_mul(4), 0],
            Self::Q8 => [head_dim.div_ceil(8) * 8, head_dim.div_ceil(2 * KV_BLOCK) * 8],
        }
    }

    /// Rounds a head's elements to what the cache can hold.
    pub fn round(self, head: &mut [f32]) {
        match self {
            Self::F32 => {}
            Self::F16 => head.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32()),
            Self::Q8 => {
                for block in head.chunks_mut(KV_BLOCK) {
                    let top = largest(block);
                    block.iter_mut().for_each(|x| *x = f32::from(code(*x, top)) * (top / 127.0));
                }
            }
        }
    }
}

impl FromStr for KvType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let known = [Self::F16, Self::F32, Self::Q8].into_iter().find(|kv_type| kv_type.name() == name);
        known.ok_or_else(|| Error::invalid_argument(format!("expected f16, f32 or q8, found {name:?}")))
    }
}

/// Turns a head's elements into bytes, and the largest magnitude of each block.
pub fn quantize_kv(head: &[f32], codes: &mut [i8], tops: &mut [f32]) {
    for ((block, codes), top) in head.chunks(KV_BLOCK).zip(codes.chunks_mut(KV_BLOCK)).zip(tops) {
        *top = largest(block);
        for (x, to) in block.iter().zip(codes) {
            *to = code(*x, *top);
        }
    }
}

/// The largest magnitude; never 0, which nothing could be divided by.
fn largest(block: &[f32]) -> f32 {
    block.iter().fold(1e-30, |top, x| top.max(x.abs()))
}

fn code(x: f32, top: f32) -> i8 {
    (x / top * 127.0).round() as i8
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{KV_BLOCK, KvType, quantize_kv};

    #[test]
    fn bytes_hold_a_head_to_half_a_step() {
        let head: Vec<f32> =
            (0..80).map(|i| ((i * 37 % 101) as f32 - 50.0) * if i < KV_BLOCK { 1.0 } else { 0.01 }).collect();
        let (mut codes, mut tops) = (vec![0i8; 80], vec![0f32; 3]);
        quantize_kv(&head, &mut codes, &mut tops);
        let mut rounded = head.clone();
        KvType::Q8.round(&mut rounded);
        for (i, x) in head.iter().enumerate() {
            let top = tops[i / KV_BLOCK];
            assert!((rounded[i] - x).abs() <= top / 127.0 * 0.51, "{i}");
            assert_eq!(rounded[i], f32::from(codes[i]) * (top / 127.0));
        }
        let mut zeros = vec![0.0; 33];
        KvType::Q8.round(&mut zeros);
        assert!(zeros.iter().all(|x| *x == 0.0));
    }

    #[test]
    fn names_are_read_back() {
        for kv_type in [KvType::F16, KvType::F32, KvType::Q8] {
            assert_eq!(kv_type.name().parse::<KvType>().unwrap(), kv_type);
        }
        assert_eq!("q4".parse::<KvType>().unwrap_err().code(), "invalid-argument");
    }
}
