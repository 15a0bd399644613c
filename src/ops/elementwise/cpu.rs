//! `add`, `mul` and `silu` on the CPU.

use super::Elementwise;
use crate::error::Result;
use crate::kernels::{CpuCx, Unary, copy};

pub fn run(op: Elementwise, cx: &mut CpuCx<'_>) -> Result<()> {
    let compute = cx.compute;
    if op == Elementwise::Silu {
        let [x] = cx.inputs()?;
        let dst = cx.output()?;
        copy(x.f32()?, dst)?;
        return compute.unary(Unary::Silu, dst);
    }
    let [lhs, rhs] = cx.inputs()?;
    let dst = cx.output()?;
    copy(lhs.f32()?, dst)?;
    match op {
        Elementwise::Mul => compute.mul(dst, rhs.f32()?),
        _ => compute.add(dst, rhs.f32()?),
    }
}
