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

    /// Takes rows of every head, as [`copy_heads`] does.
    fn copy_from(&mut self, other: &Self, head_dim: usize, (from, to, rows): (usize, usize, usize)) {
        copy_heads(&other.codes, &mut self.codes, head_dim, (from, to, rows));
        copy_heads(&other.tops, &mut self.tops, head_dim.div_ceil(KV_BLOCK), (from, to, rows));
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

/// Copies the first `rows` rows of every head between planes `[n_kv_heads, capacity, row]` of two capacities.
fn copy_heads<T: Copy>(
    from: &[T],
    to: &mut [T],
    row: usize,
    (from_capacity, to_capacity, rows): (usize, usize, usize),
) {
    for (from, to) in from.chunks_exact(from_capacity * row).zip(to.chunks_exact_mut(to_capacity * row)) {
        to[..rows * row].copy_from_slice(&from[..rows * row]);
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

    /// Bytes of the key, or of the value, of one head at one position.
    #[must_use]
    pub fn row_bytes(head_dim: usize, kv_type: KvType) -> usize {
        match kv_type {
            KvType::F16 => 2 * head_dim,
            KvType::F32 => 4 * head_dim,
            KvType::Q8 => head_dim + 4 * head_dim.div_ceil(KV_BLOCK),
        }
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

    /// A cache of its own that holds the first `tokens` positions of this one and has room for no more.
    ///
    /// # Errors
    /// `OutOfMemory` when it cannot be had, `Internal` when there are not so many positions.
    pub fn prefix(&self, tokens: usize) -> Result<Self> {
        let kv_type = match self.planes {
            Planes::F16 { .. } => KvType::F16,
            Planes::F32 { .. } => KvType::F32,
            Planes::Q8 { .. } => KvType::Q8,
        };
        let mut prefix = Self::new(self.n_kv_heads, self.head_dim, tokens, kv_type)?;
        prefix.copy_from(self, tokens)?;
        Ok(prefix)
    }

    /// Takes the first `tokens` positions of `other`, a cache of the same heads and precision.
    ///
    /// # Errors
    /// `Internal` when it is of another kind or one of the two has not so many positions.
    pub fn copy_from(&mut self, other: &Self, tokens: usize) -> Result<()> {
        let same_heads = (self.n_kv_heads, self.head_dim) == (other.n_kv_heads, other.head_dim);
        if !same_heads || tokens == 0 || tokens > self.capacity.min(other.capacity) {
            let (to, from) = (self.capacity, other.capacity);
            return Err(Error::internal(format!("{tokens} tokens cannot go from a cache of {from} to one of {to}")));
        }
        let (sizes, row) = ((other.capacity, self.capacity, tokens), self.head_dim);
        match (&other.planes, &mut self.planes) {
            (Planes::F16 { k: from_k, v: from_v }, Planes::F16 { k, v }) => {
                copy_heads(from_k, k, row, sizes);
                copy_heads(from_v, v, row, sizes);
            }
            (Planes::F32 { k: from_k, v: from_v }, Planes::F32 { k, v }) => {
                copy_heads(from_k, k, row, sizes);
                copy_heads(from_v, v, row, sizes);
            }
            (Planes::Q8 { k: from_k, v: from_v }, Planes::Q8 { k, v }) => {
                k.copy_from(from_k, row, sizes);
                v.copy_from(from_v, row, sizes);
            }
            _ => return Err(Error::internal("caches of one precision expected, found two")),
        }
        Ok(())
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
    fn a_prefix_comes_back_as_it_was() {
        let mut cache = KvCache::new(2, 2, 3, KvType::F32).unwrap();
        cache.write(0, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[0.5; 8]).unwrap();
        let prefix = cache.prefix(1).unwrap();
        cache.write(0, &[9.0; 12], &[9.0; 12]).unwrap();
        cache.copy_from(&prefix, 1).unwrap();
        let CacheSlices::F32 { k, v } = cache.slices() else { panic!("an f32 cache") };
        assert_eq!(k, [1.0, 2.0, 9.0, 9.0, 9.0, 9.0, 3.0, 4.0, 9.0, 9.0, 9.0, 9.0]);
        assert_eq!(v, [0.5, 0.5, 9.0, 9.0, 9.0, 9.0, 0.5, 0.5, 9.0, 9.0, 9.0, 9.0]);
        let other = KvCache::new(2, 2, 3, KvType::F16).unwrap();
        for (from, tokens) in [(&prefix, 0), (&prefix, 2), (&other, 1)] {
            assert_eq!(cache.copy_from(from, tokens).unwrap_err().code(), "internal");
        }
        assert_eq!(cache.prefix(4).unwrap_err().code(), "internal");
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
