//! `elementwise` on the CPU.

use super::Elementwise;
use crate::error::{Error, Result};
use crate::kernels::CpuCx;

pub fn run(_op: Elementwise, _cx: &mut CpuCx<'_>) -> Result<()> {
    Err(Error::unsupported("no kernel"))
}
