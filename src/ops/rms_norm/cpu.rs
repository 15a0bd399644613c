//! `rms_norm` on the CPU.

use super::RmsNorm;
use crate::error::Result;
use crate::kernels::CpuCx;

pub fn run(op: &RmsNorm, cx: &mut CpuCx<'_>) -> Result<()> {
    let [x, weight] = cx.inputs()?;
    let compute = cx.compute;
    compute.rms_norm(x.f32()?, weight.f32()?, op.eps, cx.output()?)
}
