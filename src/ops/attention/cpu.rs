//! `attention` on the CPU.

use super::Attention;
use crate::error::{Error, Result};
use crate::kernels::CpuCx;

pub fn run(_op: &Attention, _cx: &mut CpuCx<'_>) -> Result<()> {
    Err(Error::unsupported("no kernel"))
}
