//! Elementwise operators on the GPU.

use super::Elementwise;
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, LaunchCx, Resource};

const INVOCATIONS: usize = 256;

pub(super) fn launches(op: Elementwise, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    let (name, part) = match op {
        Elementwise::Add => ("add", "lib/add"),
        Elementwise::Mul => ("mul", "lib/mul"),
        Elementwise::Silu => ("silu", "lib/silu"),
    };
    let rhs = (op != Elementwise::Silu).then_some(Resource::Input(1));
    let len = cx.output(0)?.len();
    Ok(vec![launch(cx, (name, part), [Some(Resource::Input(0)), rhs], (Resource::Output(0), len))?])
}

/// `silu(gate) * up` of `len` elements.
pub fn silu_mul(cx: &LaunchCx<'_>, gate: Resource, up: Resource, dst: (Resource, usize)) -> Result<Launch> {
    launch(cx, ("silu_mul", "lib/silu_mul"), [Some(gate), Some(up)], dst)
}

/// `lhs + rhs` of `len` elements.
pub fn add(cx: &LaunchCx<'_>, lhs: Resource, rhs: Resource, dst: (Resource, usize)) -> Result<Launch> {
    launch(cx, ("add", "lib/add"), [Some(lhs), Some(rhs)], dst)
}

fn launch(
    cx: &LaunchCx<'_>,
    (name, part): (&'static str, &'static str),
    [lhs, rhs]: [Option<Resource>; 2],
    (dst, len): (Resource, usize),
) -> Result<Launch> {
    let mut kernel = KernelBuilder::new("elementwise", name);
    kernel.u32("WG", INVOCATIONS).u32("LEN", len).part(part);
    if part.starts_with("lib/silu") {
        kernel.part("lib/silu_value");
    }
    for (name, resource) in [("lhs", lhs), ("rhs", rhs)] {
        if let Some(resource) = resource {
            kernel.read(name, "f32", resource);
        }
    }
    kernel.write("dst", "f32", dst);
    kernel.launch_flat(len.div_ceil(INVOCATIONS), &cx.caps)
}
