//! `take_rows` on the CPU.

use crate::error::{Error, Result};
use crate::kernels::{CpuCx, copy};

pub fn run(cx: &mut CpuCx<'_>) -> Result<()> {
    let [x] = cx.inputs()?;
    let x = x.f32()?;
    let dst = cx.output()?;
    let start = x.len().checked_sub(dst.len());
    let start = start.ok_or_else(|| Error::internal(format!("{} values were asked of {}", dst.len(), x.len())))?;
    copy(&x[start..], dst)
}
