//! What a model takes on a GPU, told without one: the sizes of the buffers that `model.rs` makes.

use super::device::{check_size, rounded};
use super::model::{drafts, vocabulary};
use super::program::{DRAWN, MOST_TOKENS, PoolSizes, Target, cache_bytes};
use super::sample;
use super::state::State;
use crate::backend::{GpuLimits, LoadRequest, Machine, MemoryUse};
use crate::error::{Error, Result};
use crate::shader::Caps;

/// The bytes of all buffers. Fails with 'limits' when one is larger than the device can bind.
pub fn estimate(machine: &Machine, request: &LoadRequest) -> Result<MemoryUse> {
    let gpu = machine.gpu.ok_or_else(|| Error::not_found("expected a GPU, found none"))?;
    let caps = caps(gpu);
    let graph = &request.graph;
    let (target, placement) = Target::new(request, caps)?;
    let size = |label: &str, bytes: u64| check_size(label, bytes, caps.binding_bytes).map(|()| rounded(bytes));
    let mut kv_bytes = 0u64;
    for spec in &graph.caches {
        kv_bytes = kv_bytes.saturating_add(size("keys", cache_bytes(spec, &target)?)?.saturating_mul(2));
    }
    let mut scratch_bytes =
        rounded(size_of::<State>() as u64) + rounded(MOST_TOKENS as u64 * 4) + rounded(DRAWN as u64 * 4);
    for tensor in &graph.constants {
        let bytes = tensor.shape().iter().fold(4u64, |bytes, size| bytes.saturating_mul(*size as u64));
        scratch_bytes = scratch_bytes.saturating_add(size("constant", bytes)?);
    }
    let vocabulary = vocabulary(graph)?;
    let samplers = [sample::greedy(vocabulary, &caps)?, sample::drawn(vocabulary, &caps)?];
    let sizes = PoolSizes::new(&drafts(graph, &target)?, &[&samplers[0], &samplers[1]]);
    for len in sizes.lengths() {
        scratch_bytes = scratch_bytes.saturating_add(size("activations", len as u64 * 4)?);
    }
    let weights_bytes = placement.bytes();
    let held = MemoryUse { weights_bytes, kv_bytes, scratch_bytes, gpu_bytes: 0 };
    Ok(MemoryUse { gpu_bytes: held.total(), ..held })
}

/// The capabilities that `device.rs` finds on such a GPU in a browser.
fn caps(gpu: GpuLimits) -> Caps {
    Caps {
        f16: gpu.f16,
        int8: gpu.int8,
        workgroup_bytes: gpu.workgroup_bytes.min(Caps::WEBGPU_MINIMUM.workgroup_bytes),
        storage_buffers: gpu.storage_buffers.min(super::device::MOST_STORAGE_BUFFERS as usize),
        binding_bytes: gpu.buffer_bytes / 256 * 256,
        ..Caps::WEBGPU_MINIMUM
    }
}
