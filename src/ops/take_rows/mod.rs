//! Keeps the last rows of a step: those whose logits are wanted.

mod cpu;
mod gpu;

use super::check;
use crate::error::Result;
use crate::graph::{Dim, Dims, Fact, Operator, ReferenceCx};
use crate::kernels::CpuCx;
use crate::shader::{Launch, LaunchCx};
use crate::tensor::Tensor;

/// `dst = x[tokens - rows..]`: x f32 `[tokens, width]`, dst f32 `[rows, width]`.
#[derive(Debug, Clone, Copy)]
pub struct TakeRows;

impl Operator for TakeRows {
    fn name(&self) -> &'static str {
        "take_rows"
    }

    fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
        let [x] = check::arity(inputs)?;
        let width = check::width(x)?;
        Ok(vec![Fact::f32([Dim::Rows, Dim::Fixed(width)])])
    }

    fn reference(&self, cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let (x, width) = (inputs[0].as_f32()?, inputs[0].shape()[1]);
        let start = x.len().saturating_sub(cx.rows * width);
        Ok(vec![Tensor::f32([cx.rows, width], x[start..].to_vec())?])
    }

    fn cpu(&self, cx: &mut CpuCx<'_>) -> Result<()> {
        cpu::run(cx)
    }

    fn keeps(&self, dims: Dims) -> bool {
        dims.tokens == dims.rows
    }

    fn gpu(&self, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
        gpu::launches(cx)
    }
}
