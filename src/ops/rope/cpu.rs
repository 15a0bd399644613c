//! `rope` on the CPU.

use super::Rope;
use crate::error::{Error, Result};
use crate::kernels::CpuCx;

pub fn run(_op: &Rope, _cx: &mut CpuCx<'_>) -> Result<()> {
    Err(Error::unsupported("no kernel"))
}
