//! `take_rows` on the CPU.

use crate::error::{Error, Result};
use crate::kernels::CpuCx;

pub fn run(_cx: &mut CpuCx<'_>) -> Result<()> {
    Err(Error::unsupported("no kernel"))
}
