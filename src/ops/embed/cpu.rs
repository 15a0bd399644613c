//! `embed` on the CPU.

use crate::error::Result;
use crate::kernels::CpuCx;

pub fn run(cx: &mut CpuCx<'_>) -> Result<()> {
    let [tokens, table] = cx.inputs()?;
    let (tokens, table) = (tokens.u32()?, table.matrix()?);
    let last = table.rows() - 1;
    for (&token, row) in tokens.iter().zip(cx.output()?.chunks_exact_mut(table.columns())) {
        table.row((token as usize).min(last), row)?;
    }
    Ok(())
}
