//! `attention` on the CPU: queries and keys are normed and rotated in scratch, keys and values go to the cache, and
//! one parallel region attends.

use super::{Attention, AttentionInputs};
use crate::error::{Error, Result};
use crate::kernels::{self, AttentionShape, CpuCx, CpuInput, Rotary, Scratch, copy};
use crate::ops::rope::rotary;

pub fn run(op: &Attention, cx: &mut CpuCx<'_>) -> Result<()> {
    let inputs = op.split(cx.inputs)?;
    let rotary = match op.rotary {
        // The table is always the last input.
        Some(fused) => Some(rotary(cx, cx.inputs.len() - 1, op.head_dim, fused.pairs)?),
        None => None,
    };
    let AttentionInputs { q, k, v, norms, .. } = inputs;
    let (q_norm, k_norm) = norms.unzip();
    let Scratch { first, second, .. } = &mut *cx.scratch;
    let sides = [(q, q_norm, op.n_heads, &mut *first), (k, k_norm, op.n_kv_heads, &mut *second)];
    for (x, norm, n_heads, out) in sides {
        let x = x.f32()?;
        out.resize(x.len(), 0.0);
        prepare(op, cx.compute, (x, norm.copied()), (n_heads, rotary.as_ref()), out)?;
    }
    let cache = cx.cache.as_deref_mut().ok_or_else(|| Error::internal("attention was given no cache"))?;
    cache.write(cx.position, second, v.f32()?)?;
    let shape = AttentionShape {
        n_heads: op.n_heads,
        n_kv_heads: op.n_kv_heads,
        head_dim: op.head_dim,
        seq_len: cx.tokens,
        position: cx.position,
        capacity: cache.capacity(),
        n_keys: cx.position + cx.tokens,
        causal: true,
        window: op.window,
        scale: op.scale,
        soft_cap: None,
    };
    let attention = kernels::Attention { q: first, cache: cache.slices(), shape };
    let [dst] = &mut *cx.outputs else {
        return Err(Error::internal(format!("expected one output, found {}", cx.outputs.len())));
    };
    // The cache has the keys now.
    cx.compute.attention(&attention, second, dst)
}

/// Norms and rotates the heads of `x` into `out`.
fn prepare(
    op: &Attention,
    compute: &kernels::Compute,
    (x, norm): (&[f32], Option<CpuInput<'_>>),
    (n_heads, rotary): (usize, Option<&Rotary<'_>>),
    out: &mut [f32],
) -> Result<()> {
    match (norm, op.norm) {
        (Some(weight), Some(norm)) => compute.rms_norm(x, weight.f32()?, norm.eps, out)?,
        _ => copy(x, out)?,
    }
    match rotary {
        Some(rotary) => compute.rotate(out, n_heads * op.head_dim, rotary),
        None => Ok(()),
    }
}
