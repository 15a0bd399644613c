//! `rms_norm` on the GPU.

use super::RmsNorm;
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, LaunchCx, Resource, floor_power_of_two};

pub fn launches(op: &RmsNorm, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    Ok(vec![launch(cx, [0, 1], op.eps, Resource::Output(0))?])
}

/// Normalizes input `x` with the weight input `weight`.
pub fn launch(cx: &LaunchCx<'_>, [x, weight]: [usize; 2], eps: f32, dst: Resource) -> Result<Launch> {
    let width = cx.input(weight)?.width();
    let parts = cx.input(x)?.len() / width.max(1);
    let mut kernel = KernelBuilder::new("rms_norm", "");
    kernel.u32("WG", floor_power_of_two(width / 4).clamp(16, 256)).u32("WIDTH", width).u32("PARTS", parts);
    kernel.part("lib/total").f32("EPS", eps).u32("WEIGHT_AT", cx.input(weight)?.vector_at());
    kernel.read("x", "f32", Resource::Input(x)).read("weight", "f32", Resource::Input(weight)).write("dst", "f32", dst);
    kernel.launch_flat(parts, &cx.caps)
}
