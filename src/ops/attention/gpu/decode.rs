//! Attention of one token: over splits of the keys, then the splits together.

use super::{Call, INVOCATIONS};
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, Resource};

/// Keys that a workgroup scores at once.
const BLOCK: usize = 64;
/// Queries of a workgroup.
const ROWS: usize = 8;
/// The most workgroups that share the keys of a head.
const SPLITS: usize = 64;

pub fn launches(call: &Call<'_>, launches: &mut Vec<Launch>) -> Result<()> {
    let fused = call.group <= ROWS && call.shared_norms()?;
    if !fused {
        launches.push(call.kv_write()?);
    }
    let splits = call.cx.capacity.div_ceil(BLOCK).clamp(1, SPLITS);
    launches.push(attend(call, splits, fused)?);
    if splits > 1 {
        launches.push(merge(call, splits)?);
    }
    Ok(())
}

fn attend(call: &Call<'_>, splits: usize, fused: bool) -> Result<Launch> {
    let (op, cx) = (call.op, call.cx);
    let rows = call.group.min(ROWS);
    let head_4 = op.head_dim / 4;
    let invocations = head_4.next_power_of_two().max(INVOCATIONS);
    let row_lanes = (invocations / head_4).min(rows);
    let name = call.name(if fused { " fused" } else { "" });
    let mut kernel = KernelBuilder::new("attention", &name);
    call.shape(&mut kernel, invocations, call.inputs.norms.map(|(q, _)| q))?;
    kernel.u32("ROWS", rows).u32("LANES_A_ROW", invocations / rows);
    kernel.u32("ROW_LANES", row_lanes).u32("ROWS_A_LANE", rows.div_ceil(row_lanes));
    kernel.f32("SCALE", op.scale);
    split_keys(call, &mut kernel, splits);
    kernel.read("q", "f32", Resource::Input(*call.inputs.q));
    if fused {
        call.kv_inputs(&mut kernel);
    } else {
        kernel.read("keys", "Kv4", Resource::Keys).read("values", "Kv4", Resource::Values).part("lib/kv_stored");
    }
    kernel.write("dst", "vec4<f32>", if splits > 1 { partials(call, splits) } else { Resource::Output(0) });
    kernel.launch([call.group.div_ceil(rows), op.n_kv_heads, splits], &cx.caps)
}

fn merge(call: &Call<'_>, splits: usize) -> Result<Launch> {
    let head_4 = call.op.head_dim / 4;
    let mut kernel = KernelBuilder::new("attention_merge", "");
    kernel.u32("WG", head_4.next_power_of_two().clamp(16, 64)).u32("HEADS", call.op.n_heads).u32("HEAD_4", head_4);
    kernel.u32("CAPACITY", call.cx.capacity).state();
    split_keys(call, &mut kernel, splits);
    kernel.read("splits", "vec4<f32>", partials(call, splits)).write("dst", "vec4<f32>", Resource::Output(0));
    kernel.launch([call.op.n_heads, 1, 1], &call.cx.caps)
}

fn split_keys(call: &Call<'_>, kernel: &mut KernelBuilder, splits: usize) {
    kernel.u32("SPLITS", splits).u32("BLOCK", BLOCK).part("lib/splits");
    kernel.u32("WINDOW", call.op.window.unwrap_or(u32::MAX as usize));
}

fn partials(call: &Call<'_>, splits: usize) -> Resource {
    Resource::Scratch { index: 0, len: splits * call.op.n_heads * (call.op.head_dim + 4) }
}
