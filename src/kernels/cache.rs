//! Keys and values of one attention layer, in half or single precision or as bytes with scales.

use super::attention::{ByteRows, CacheSlices};
use super::float16::store_f16;
use crate::error::{Error, Result};
use crate::quant::{KV_BLOCK, KvType, quantize_kv};

/// Keys and values, each `[n_kv_heads, capacity, head_dim]`.
#[derive(Debug)]
pub struct KvCache {
    n_kv_heads: usize,
    head_dim: usize,
    capacity: usize,
    planes: Planes,
}

#[derive(Debug)]
enum Planes {
    F16 { k: Vec<u16>, v: Vec<u16> },
    F32 { k: Vec<f32>, v: Vec<f32> },
    Q8 { k: Bytes, v: Bytes },
}

/// Heads as bytes.
#[derive(Debug)]
struct Bytes {
    codes: Vec<i8>,
    tops: Vec<f32>,
}

impl Bytes {
    fn zeros(rows: usize, head_dim: usize) -> Result<Self> {
        Ok(Self { codes: zeros(rows * head_dim)?, tops: zeros(rows * head_dim.div_ceil(KV_BLOCK))? })
    }

    fn bytes(&self) -> usize {
        self.codes.capacity() + 4 * self.tops.capacity()
    }

    fn rows(&self) -> ByteRows<'_> {
        ByteRows { codes: &self.codes, tops: &self.tops }
    }

    fn store(&mut self, row: usize, head: &[f32]) {
        let blocks = head.len().div_ceil(KV_BLOCK);
        quantize_kv(head, &mut self.codes[row * head.len()..], &mut self.tops[row * blocks..][..blocks]);
    }
}

/// `len` zeros, or an error that says how much was wanted.
fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|_| Error::out_of_memory(format!("{len} values of a key/value cache could not be had")))?;
    values.resize(len, T::default());
    Ok(values)
}

impl KvCache {
    /// An empty cache for `capacity` tokens.
    ///
    /// # Errors
    /// `OutOfMemory` when it cannot be had.
    pub fn new(n_kv_heads: usize, head_dim: usize, capacity: usize, kv_type: KvType) -> Result<Self> {
        let len = n_kv_heads.checked_mul(head_dim).and_then(|width| width.checked_mul(capacity));
        let len = len.ok_or_else(|| Error::out_of_memory(format!("a cache of {capacity} tokens is too large")))?;
        let bytes = || Bytes::zeros(len / head_dim.max(1), head_dim);
        let planes = match kv_type {
            KvType::F16 => Planes::F16 { k: zeros(len)?, v: zeros(len)? },
            KvType::F32 => Planes::F32 { k: zeros(len)?, v: zeros(len)? },
            KvType::Q8 => Planes::Q8 { k: bytes()?, v: bytes()? },
        };
        Ok(Self { n_kv_heads, head_dim, capacity, planes })
    }

    /// Tokens that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.planes {
            Planes::F16 { k, v } => 2 * (k.capacity() + v.capacity()),
            Planes::F32 { k, v } => 4 * (k.capacity() + v.capacity()),
            Planes::Q8 { k, v } => k.bytes() + v.bytes(),
        }
    }

    /// Keys and values for the kernels.
    #[must_use]
    pub fn slices(&self) -> CacheSlices<'_> {
        match &self.planes {
            Planes::F16 { k, v } => CacheSlices::F16 { k, v },
            Planes::F32 { k, v } => CacheSlices::F32 { k, v },
            Planes::Q8 { k, v } => CacheSlices::Q8 { k: k.rows(), v: v.rows() },
        }
    }

    /// Stores keys and values, each `[tokens, n_kv_heads * head_dim]`, at `position..`.
    ///
    /// # Errors
    /// `Internal` when they are no whole rows of equal number, `ContextOverflow` when they do not fit.
    pub fn write(&mut self, position: usize, k: &[f32], v: &[f32]) -> Result<()> {
        let width = self.n_kv_heads * self.head_dim;
        if k.len() != v.len() || width == 0 || !k.len().is_multiple_of(width) {
            return Err(Error::internal(format!("{} keys and {} values are no rows of {width}", k.len(), v.len())));
        }
        let tokens = k.len() / width;
        if position.checked_add(tokens).is_none_or(|end| end > self.capacity) {
            return Err(Error::context_overflow(format!(
                "expected at most {} tokens, found {tokens} at position {position}",
                self.capacity
            )));
        }
        let (capacity, head_dim) = (self.capacity, self.head_dim);
        let place = |token: usize, head: usize| (head * capacity + position + token) * head_dim;
        let heads = k.chunks_exact(head_dim).zip(v.chunks_exact(head_dim)).enumerate();
        for (index, (from_k, from_v)) in heads {
            let at = place(index / self.n_kv_heads, index % self.n_kv_heads);
            match &mut self.planes {
                Planes::F16 { k, v } => {
                    store_f16(from_k, &mut k[at..at + head_dim]);
                    store_f16(from_v, &mut v[at..at + head_dim]);
                }
                Planes::F32 { k, v } => {
                    k[at..at + head_dim].copy_from_slice(from_k);
                    v[at..at + head_dim].copy_from_slice(from_v);
                }
                Planes::Q8 { k, v } => {
                    k.store(at / head_dim, from_k);
                    v.store(at / head_dim, from_v);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::{CacheSlices, KvCache, KvType};

    #[test]
    fn rows_are_stored_by_head_and_position() {
        let mut cache = KvCache::new(2, 2, 3, KvType::F32).unwrap();
        cache.write(1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[0.5; 8]).unwrap();
        let CacheSlices::F32 { k, v } = cache.slices() else { panic!("an f32 cache") };
        assert_eq!(k, [0.0, 0.0, 1.0, 2.0, 5.0, 6.0, 0.0, 0.0, 3.0, 4.0, 7.0, 8.0]);
        assert_eq!(v, [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut cache = KvCache::new(2, 2, 3, KvType::F16).unwrap();
        assert_eq!(cache.write(3, &[0.0; 4], &[0.0; 4]).unwrap_err().code(), "context-overflow");
        assert_eq!(cache.write(usize::MAX, &[0.0; 4], &[0.0; 4]).unwrap_err().code(), "context-overflow");
        assert_eq!(cache.write(0, &[0.0; 3], &[0.0; 3]).unwrap_err().code(), "internal");
        assert_eq!(KvCache::new(usize::MAX, 2, 3, KvType::F16).unwrap_err().code(), "out-of-memory");
    }
}
