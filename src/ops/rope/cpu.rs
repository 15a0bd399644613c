//! `rope` on the CPU.

use super::{Pairs, Rope};
use crate::error::{Error, Result};
use crate::kernels::{CpuCx, Rotary, copy};

pub fn run(op: &Rope, cx: &mut CpuCx<'_>) -> Result<()> {
    let [x, _] = cx.inputs()?;
    let rotary = rotary(cx, 1, op.head_dim, op.pairs)?;
    let compute = cx.compute;
    let width = op.head_dim * (x.f32()?.len() / (cx.tokens * op.head_dim).max(1));
    let dst = cx.output()?;
    copy(x.f32()?, dst)?;
    compute.rotate(dst, width, &rotary)
}

/// The rows of the step's positions of the rotary table that is input `index`, `[capacity, pairs, 2]`.
pub fn rotary<'a>(cx: &CpuCx<'a>, index: usize, head_dim: usize, pairs: Pairs) -> Result<Rotary<'a>> {
    let (Some(table), Some([_, n_pairs, 2])) = (cx.inputs.get(index), cx.shapes.get(index).map(Vec::as_slice)) else {
        return Err(Error::internal(format!("expected input {index} to be a rotary table")));
    };
    let row = 2 * n_pairs;
    let rows = table.f32()?.get(cx.position * row..(cx.position + cx.tokens) * row);
    let turns = rows.ok_or_else(|| {
        Error::context_overflow(format!("the rotary table ends before position {}", cx.position + cx.tokens))
    })?;
    Ok(Rotary { turns, n_pairs: *n_pairs, head_dim, interleaved: pairs == Pairs::Interleaved })
}
