//! Copies of the beginnings of all caches, made and read back by the device itself. Knows no tokens: only how many
//! positions of which cache.

use super::device::Gpu;
use super::program::Shared;
use crate::error::{Error, Result};
use crate::graph::CacheSpec;
use std::collections::BTreeMap;

/// The copies, by place.
#[derive(Default)]
pub struct Snapshots {
    places: BTreeMap<usize, Snapshot>,
    /// Bytes of all copies.
    pub bytes: u64,
}

struct Snapshot {
    tokens: usize,
    /// Keys and values of each cache, laid out as a cache of `tokens` positions.
    planes: Vec<[wgpu::Buffer; 2]>,
}

/// A buffer of keys or values with the positions that each of its heads has room for.
type Plane<'a> = (&'a wgpu::Buffer, usize);

impl Snapshots {
    /// Bytes of a copy of `tokens` positions.
    pub fn bytes_of(shared: &Shared, caches: &[CacheSpec], tokens: usize) -> u64 {
        caches.iter().map(|spec| 2 * plane_bytes(shared, spec, tokens)).sum()
    }

    /// Copies the first `tokens` positions of the caches to a place.
    pub async fn save(
        &mut self,
        gpu: &mut Gpu,
        shared: &Shared,
        caches: &[CacheSpec],
        (place, tokens): (usize, usize),
    ) -> Result<()> {
        self.discard(gpu, place);
        let before = gpu.bytes;
        // A browser says late that memory ran out; asked like this, it is no fault of whatever runs next.
        let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let made = make(gpu, shared, caches, tokens);
        let refused = scope.pop().await;
        let planes = made.and_then(|planes| match refused {
            None => Ok(planes),
            Some(error) => {
                Err(Error::out_of_memory(format!("the device has no room for a copy of the cache: {error}")))
            }
        });
        let snapshot = match planes {
            Ok(planes) => Snapshot { tokens, planes },
            Err(error) => {
                gpu.bytes = before;
                return Err(error);
            }
        };
        self.bytes += gpu.bytes - before;
        let mut encoder = gpu.encoder();
        for ((spec, from), to) in caches.iter().zip(&shared.caches).zip(&snapshot.planes) {
            for (from, to) in from.iter().zip(to) {
                copy(&mut encoder, shared, spec, (from, shared.target.capacity), (to, tokens), tokens);
            }
        }
        self.places.insert(place, snapshot);
        gpu.submit(encoder)
    }

    /// Copies the first `tokens` positions of a place back to the caches.
    pub fn restore(
        &self,
        gpu: &mut Gpu,
        shared: &Shared,
        caches: &[CacheSpec],
        (place, tokens): (usize, usize),
    ) -> Result<()> {
        let saved = self.places.get(&place).filter(|saved| saved.tokens >= tokens);
        let saved = saved.ok_or_else(|| Error::internal(format!("no {tokens} tokens were saved at {place}")))?;
        let mut encoder = gpu.encoder();
        for ((spec, to), from) in caches.iter().zip(&shared.caches).zip(&saved.planes) {
            for (from, to) in from.iter().zip(to) {
                copy(&mut encoder, shared, spec, (from, saved.tokens), (to, shared.target.capacity), tokens);
            }
        }
        gpu.submit(encoder)
    }

    /// Frees a place.
    pub fn discard(&mut self, gpu: &mut Gpu, place: usize) {
        let buffers = self.places.remove(&place).into_iter().flat_map(|saved| saved.planes).flatten();
        for buffer in buffers {
            self.bytes -= buffer.size();
            gpu.bytes -= buffer.size();
            // At once, where a browser would wait for its garbage collection.
            buffer.destroy();
        }
    }
}

fn plane_bytes(shared: &Shared, spec: &CacheSpec, tokens: usize) -> u64 {
    shared.target.kv_type.row_bytes(spec.head_dim) as u64 * spec.n_kv_heads as u64 * tokens as u64
}

fn make(gpu: &mut Gpu, shared: &Shared, caches: &[CacheSpec], tokens: usize) -> Result<Vec<[wgpu::Buffer; 2]>> {
    let mut plane = |spec| gpu.buffer("snapshot", plane_bytes(shared, spec, tokens), wgpu::BufferUsages::empty());
    caches.iter().map(|spec| Ok([plane(spec)?, plane(spec)?])).collect()
}

/// Records the copy of the first `tokens` positions of every head.
fn copy(
    encoder: &mut wgpu::CommandEncoder,
    shared: &Shared,
    spec: &CacheSpec,
    (from, from_tokens): Plane<'_>,
    (to, to_tokens): Plane<'_>,
    tokens: usize,
) {
    let heads = spec.n_kv_heads as u64;
    // Bytes of a position that lie in front, for all heads and positions.
    let mut before = 0;
    for row in
        shared.target.kv_type.row_parts(spec.head_dim).map(|bytes| bytes as u64).into_iter().filter(|row| *row > 0)
    {
        for head in 0..heads {
            let start = |tokens: usize| (heads * before + head * row) * tokens as u64;
            encoder.copy_buffer_to_buffer(from, start(from_tokens), to, start(to_tokens), tokens as u64 * row);
        }
        before += row;
    }
}
