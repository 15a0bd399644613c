//! Attention of many tokens: the queries made ready once, then blocks of them over all keys that they see.

use super::{Call, INVOCATIONS};
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, Resource};

/// Queries of a workgroup: four invocations each.
const ROWS: usize = 64;
/// Keys that a workgroup scores at once; the kernel is written for this many.
const KEYS: usize = 32;

pub fn launches(call: &Call<'_>, launches: &mut Vec<Launch>) -> Result<()> {
    launches.push(call.kv_write()?);
    launches.push(queries(call)?);
    launches.push(attend(call)?);
    Ok(())
}

fn turned(call: &Call<'_>) -> Resource {
    Resource::Scratch { index: 0, len: call.cx.tokens * call.op.n_heads * call.op.head_dim }
}

fn queries(call: &Call<'_>) -> Result<Launch> {
    let mut kernel = KernelBuilder::new("query_write", &call.name(""));
    call.shape(&mut kernel, INVOCATIONS, call.inputs.norms.map(|(q, _)| q))?;
    kernel.f32("SCALE", call.op.scale).part("lib/total");
    kernel.read("q", "f32", Resource::Input(*call.inputs.q)).write("dst", "f32", turned(call));
    kernel.launch([call.cx.tokens, call.op.n_heads, 1], &call.cx.caps)
}

fn attend(call: &Call<'_>) -> Result<Launch> {
    let (op, cx) = (call.op, call.cx);
    let (invocations, head_4) = (ROWS * 4, op.head_dim / 4);
    let groups = (invocations / head_4).min(ROWS);
    let mut kernel = KernelBuilder::new("attention_prefill", cx.kv_type.name());
    kernel.u32("WG", invocations).u32("ROWS", ROWS);
    kernel.u32("HEADS", op.n_heads).u32("GROUP", call.group).u32("HEAD_4", head_4).u32("CAPACITY", cx.capacity);
    kernel.u32("GROUPS", groups).u32("ROWS_A_LANE", ROWS.div_ceil(groups));
    kernel.u32("SPLITS", 1).u32("BLOCK", KEYS).u32("WINDOW", op.window.unwrap_or(u32::MAX as usize));
    kernel.state().part("lib/splits");
    call.cache_words(&mut kernel, false, false);
    kernel.read("q", "vec4<f32>", turned(call)).read("keys", "KvWord", Resource::Keys);
    kernel.read("values", "KvWord", Resource::Values).write("dst", "vec4<f32>", Resource::Output(0));
    kernel.launch([(cx.tokens * call.group).div_ceil(ROWS), op.n_kv_heads, 1], &cx.caps)
}
