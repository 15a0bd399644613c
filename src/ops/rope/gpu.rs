//! `rope` on the GPU.

use super::{Pairs, Rope};
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, LaunchCx, Operand, Resource};

const INVOCATIONS: usize = 256;

pub fn launches(op: &Rope, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    let x = cx.input(0)?;
    let mut kernel = KernelBuilder::new("rope", "");
    kernel.u32("WG", INVOCATIONS).u32("LEN", x.len()).u32("WIDTH", x.width()).u32("HEAD_DIM", op.head_dim);
    kernel.state().read("x", "f32", Resource::Input(0));
    turns(&mut kernel, op.pairs, Some((Resource::Input(1), cx.input(1)?)));
    kernel.write("dst", "f32", Resource::Output(0));
    Ok(vec![kernel.launch_flat(x.len().div_ceil(INVOCATIONS), &cx.caps)?])
}

/// Adds the functions `partner` and `turned`, over a rotary table or (without one) as identities.
pub fn turns(kernel: &mut KernelBuilder, pairs: Pairs, table: Option<(Resource, &Operand)>) {
    let n_pairs = table.and_then(|(_, table)| table.shape.get(1).copied()).unwrap_or(0);
    kernel.u32("PAIRS", n_pairs).bool("INTERLEAVED", pairs == Pairs::Interleaved).part("lib/turn");
    match table {
        Some((resource, _)) => kernel.read("table", "vec2<f32>", resource).part("lib/rope_table"),
        None => kernel.part("lib/rope_absent"),
    };
}
