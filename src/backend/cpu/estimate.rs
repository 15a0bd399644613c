//! What a model takes in this backend, told without building it.

use super::MAX_TOKENS;
use crate::backend::{LoadRequest, Machine, MemoryUse};
use crate::error::{Error, Result};
use crate::graph::Dims;
use crate::kernels::{CpuMatrix, KvCache};
use crate::plan::{Loc, Plan};

/// The bytes that weights and caches take, and that activations take while a long prompt is read.
pub fn estimate(_machine: &Machine, request: &LoadRequest) -> Result<MemoryUse> {
    let graph = &request.graph;
    let weights = graph.weights.iter().zip(&request.layouts).map(|(weight, layout)| {
        if weight.vector {
            return product(&[4, weight.columns]);
        }
        CpuMatrix::bytes_of(*layout, weight.rows, weight.columns).unwrap_or(u64::MAX)
    });
    let constants = graph.constants.iter().map(|tensor| product(tensor.shape()).saturating_mul(4));
    let caches = graph.caches.iter().map(|spec| {
        product(&[2, KvCache::row_bytes(spec.head_dim, request.kv_type), spec.n_kv_heads, request.capacity])
    });
    Ok(MemoryUse {
        weights_bytes: weights.chain(constants).fold(0, u64::saturating_add),
        kv_bytes: caches.fold(0, u64::saturating_add),
        scratch_bytes: scratch_bytes(request)?,
        gpu_bytes: 0,
    })
}

/// Slots, what the largest operation keeps within itself, and the logits.
fn scratch_bytes(request: &LoadRequest) -> Result<u64> {
    let dims = Dims { tokens: MAX_TOKENS.min(request.capacity.max(1)), rows: 1 };
    let plan = Plan::new(&request.graph, dims)?;
    let activations = plan.steps.iter().flat_map(|step| {
        let inputs = step.inputs.iter().zip(&step.input_shapes);
        inputs.filter(|(loc, _)| matches!(loc, Loc::Slot(_))).map(|(_, shape)| product(shape))
    });
    // About what operations keep within themselves, for each value of the widest input (that of a layer's last product): the
    // float it is multiplied by before, its codes of 8 or 16 bits with scales and sums, and a share of the narrower input that
    // is normed, or of the queries.
    let within = activations.max().unwrap_or(0).saturating_mul(8);
    let output = request.graph.outputs.first().ok_or_else(|| Error::internal("the graph has no output"))?;
    let logits = request.graph.fact(*output).len(dims) as u64 * 4;
    Ok((plan.slot_bytes() as u64).saturating_add(within).saturating_add(logits))
}

fn product(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |product, size| product.saturating_mul(*size as u64))
}
