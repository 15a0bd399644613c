//! Embedding lookup: rows of a table by token id.

mod cpu;
mod gpu;

use super::check;
use crate::error::{Error, Result};
use crate::graph::{Fact, Operator, ReferenceCx};
use crate::kernels::CpuCx;
use crate::shader::{Launch, LaunchCx};
use crate::tensor::Tensor;

/// `dst[t] = table[tokens[t]]`: tokens u32 `[tokens]`, table `[vocab_size, hidden_size]`, dst f32 `[tokens, hidden_size]`.
/// Ids are validated by the caller; a kernel clamps what is out of range.
#[derive(Debug, Clone, Copy)]
pub struct Embed;

impl Operator for Embed {
    fn name(&self) -> &'static str {
        "embed"
    }

    fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
        let [tokens, table] = check::arity(inputs)?;
        let (_, hidden) = check::matrix(table)?;
        let mut shape = tokens.shape.clone();
        shape.push(crate::graph::Dim::Fixed(hidden));
        Ok(vec![Fact::f32(shape)])
    }

    fn reference(&self, _cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let ids = inputs[0].as_u32()?;
        let (table, hidden) = (inputs[1].as_f32()?, inputs[1].shape()[1]);
        let mut dst = Vec::with_capacity(ids.len() * hidden);
        for &id in ids {
            let start = id as usize * hidden;
            let row = table.get(start..start + hidden);
            dst.extend_from_slice(row.ok_or_else(|| Error::internal(format!("token {id} is outside the table")))?);
        }
        Ok(vec![Tensor::f32([ids.len(), hidden], dst)?])
    }

    fn cpu(&self, cx: &mut CpuCx<'_>) -> Result<()> {
        cpu::run(cx)
    }

    fn gpu(&self, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
        gpu::launches(cx)
    }
}
