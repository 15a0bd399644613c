//! `linear` on the CPU.

use super::Linear;
use crate::error::{Error, Result};
use crate::kernels::CpuCx;

pub fn run(_op: &Linear, _cx: &mut CpuCx<'_>) -> Result<()> {
    Err(Error::unsupported("no kernel"))
}
