//! Keys and values of one attention layer, in half or single precision.

use super::attention::CacheSlices;
use super::float16::store_f16;
use crate::error::{Error, Result};

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
}

/// Copies the first `tokens` rows of every head between planes `[n_kv_heads, capacity, head_dim]` of these head sizes.
fn copy_heads<T: Copy>(from: &[T], from_head: usize, to: &mut [T], to_head: usize, len: usize) {
    for (from, to) in from.chunks_exact(from_head).zip(to.chunks_exact_mut(to_head)) {
        to[..len].copy_from_slice(&from[..len]);
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
    /// An empty cache for `capacity` tokens, in half precision if `half`.
    ///
    /// # Errors
    /// `OutOfMemory` when it cannot be had.
    pub fn new(n_kv_heads: usize, head_dim: usize, capacity: usize, half: bool) -> Result<Self> {
        let len = n_kv_heads.checked_mul(head_dim).and_then(|width| width.checked_mul(capacity));
        let len = len.ok_or_else(|| Error::out_of_memory(format!("a cache of {capacity} tokens is too large")))?;
        let planes = if half {
            Planes::F16 { k: zeros(len)?, v: zeros(len)? }
        } else {
            Planes::F32 { k: zeros(len)?, v: zeros(len)? }
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
        }
    }

    /// A cache of its own that holds the first `tokens` positions of this one and has room for no more.
    ///
    /// # Errors
    /// `OutOfMemory` when it cannot be had, `Internal` when there are not so many positions.
    pub fn prefix(&self, tokens: usize) -> Result<Self> {
        let half = matches!(self.planes, Planes::F16 { .. });
        let mut prefix = Self::new(self.n_kv_heads, self.head_dim, tokens, half)?;
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
        let (from, to, len) = (other.capacity * self.head_dim, self.capacity * self.head_dim, tokens * self.head_dim);
        match (&other.planes, &mut self.planes) {
            (Planes::F16 { k: from_k, v: from_v }, Planes::F16 { k, v }) => {
                copy_heads(from_k, from, k, to, len);
                copy_heads(from_v, from, v, to, len);
            }
            (Planes::F32 { k: from_k, v: from_v }, Planes::F32 { k, v }) => {
                copy_heads(from_k, from, k, to, len);
                copy_heads(from_v, from, v, to, len);
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
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::{CacheSlices, KvCache};

    #[test]
    fn rows_are_stored_by_head_and_position() {
        let mut cache = KvCache::new(2, 2, 3, false).unwrap();
        cache.write(1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[0.5; 8]).unwrap();
        let CacheSlices::F32 { k, v } = cache.slices() else { panic!("an f32 cache") };
        assert_eq!(k, [0.0, 0.0, 1.0, 2.0, 5.0, 6.0, 0.0, 0.0, 3.0, 4.0, 7.0, 8.0]);
        assert_eq!(v, [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5]);
    }

    #[test]
    fn a_prefix_comes_back_as_it_was() {
        let mut cache = KvCache::new(2, 2, 3, false).unwrap();
        cache.write(0, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[0.5; 8]).unwrap();
        let prefix = cache.prefix(1).unwrap();
        cache.write(0, &[9.0; 12], &[9.0; 12]).unwrap();
        cache.copy_from(&prefix, 1).unwrap();
        let CacheSlices::F32 { k, v } = cache.slices() else { panic!("an f32 cache") };
        assert_eq!(k, [1.0, 2.0, 9.0, 9.0, 9.0, 9.0, 3.0, 4.0, 9.0, 9.0, 9.0, 9.0]);
        assert_eq!(v, [0.5, 0.5, 9.0, 9.0, 9.0, 9.0, 0.5, 0.5, 9.0, 9.0, 9.0, 9.0]);
        let other = KvCache::new(2, 2, 3, true).unwrap();
        for (from, tokens) in [(&prefix, 0), (&prefix, 2), (&other, 1)] {
            assert_eq!(cache.copy_from(from, tokens).unwrap_err().code(), "internal");
        }
        assert_eq!(cache.prefix(4).unwrap_err().code(), "internal");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut cache = KvCache::new(2, 2, 3, true).unwrap();
        assert_eq!(cache.write(3, &[0.0; 4], &[0.0; 4]).unwrap_err().code(), "context-overflow");
        assert_eq!(cache.write(usize::MAX, &[0.0; 4], &[0.0; 4]).unwrap_err().code(), "context-overflow");
        assert_eq!(cache.write(0, &[0.0; 3], &[0.0; 3]).unwrap_err().code(), "internal");
        assert_eq!(KvCache::new(usize::MAX, 2, 3, true).unwrap_err().code(), "out-of-memory");
    }
}
