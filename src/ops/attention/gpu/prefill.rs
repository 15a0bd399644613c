//! Attention of many tokens: blocks of queries over all keys that they see.

use super::{Call, INVOCATIONS};
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, Resource};

/// Keys that a workgroup scores at once.
const BLOCK: usize = 64;
/// Queries of a workgroup.
const ROWS: usize = 8;

pub fn launch(call: &Call<'_>) -> Result<Launch> {
    let (op, cx) = (call.op, call.cx);
    let rows = (cx.tokens * call.group).min(ROWS);
    let head_4 = op.head_dim / 4;
    let invocations = head_4.next_power_of_two().max(INVOCATIONS);
    let row_lanes = (invocations / head_4).min(rows);
    let mut kernel = KernelBuilder::new("attention", &call.name(""));
    call.shape(&mut kernel, invocations, call.inputs.norms.map(|(q, _)| q))?;
    kernel.u32("ROWS", rows).u32("LANES_A_ROW", invocations / rows);
    kernel.u32("ROW_LANES", row_lanes).u32("ROWS_A_LANE", rows.div_ceil(row_lanes));
    kernel.f32("SCALE", op.scale);
    kernel.u32("SPLITS", 1).u32("BLOCK", BLOCK).part("lib/splits");
    kernel.u32("WINDOW", op.window.unwrap_or(u32::MAX as usize));
    kernel.read("q", "f32", Resource::Input(*call.inputs.q));
    kernel.read("keys", "Kv4", Resource::Keys).read("values", "Kv4", Resource::Values).part("lib/kv_stored");
    kernel.write("dst", "vec4<f32>", Resource::Output(0));
    kernel.launch([(cx.tokens * call.group).div_ceil(rows), op.n_kv_heads, 1], &cx.caps)
}
