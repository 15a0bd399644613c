//! `take_rows` on the GPU.

use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, LaunchCx, Resource};

const INVOCATIONS: usize = 256;

pub fn launches(cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    let dst = cx.output(0)?;
    let mut kernel = KernelBuilder::new("take_rows", "");
    kernel.u32("WG", INVOCATIONS).u32("ROWS", dst.rows()).u32("WIDTH", dst.width());
    kernel.state().read("x", "f32", Resource::Input(0)).write("dst", "f32", Resource::Output(0));
    Ok(vec![kernel.launch_flat(dst.len().div_ceil(INVOCATIONS), &cx.caps)?])
}
