//! `rms_norm` on the CPU.

use super::RmsNorm;
use crate::error::{Error, Result};
use crate::kernels::CpuCx;

pub fn run(_op: &RmsNorm, _cx: &mut CpuCx<'_>) -> Result<()> {
    Err(Error::unsupported("no kernel"))
}
