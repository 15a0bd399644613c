//! Attention of one token: a dispatch that writes its key and value and attends, split over keys, and one that puts the
//! splits together.

use super::{Call, prefill};
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, Resource, floor_power_of_two};

/// Keys that a workgroup scores at once.
const BLOCK: usize = 64;
/// The most query heads of a workgroup.
const ROWS: usize = 8;
/// The most workgroups that share the keys of a head.
const SPLITS: usize = 64;

pub fn launches(call: &Call<'_>, launches: &mut Vec<Launch>) -> Result<()> {
    let head_dim = call.op.head_dim;
    // For a CPU that stands for a GPU even a workgroup without keys is much work (SwiftShader: 0.9 ms).
    let most = if call.cx.caps.software { 1 } else { SPLITS };
    let splits = call.cx.capacity.div_ceil(BLOCK).clamp(1, most);
    // Few workgroups are done sooner with more invocations each.
    let invocations = if splits <= SPLITS / 4 { 256 } else { 128 };
    let shape = Shape::new(head_dim, call.group, invocations, call.cx.caps.workgroup_bytes);
    let Some(shape) = shape.filter(|_| head_dim.is_multiple_of(8) && call.shared_norms().unwrap_or(false)) else {
        return prefill::launches(call, launches);
    };
    launches.push(attend(call, &shape, splits)?);
    if splits > 1 {
        launches.push(merge(call, splits)?);
    }
    Ok(())
}

/// How a workgroup divides its work.
struct Shape {
    invocations: usize,
    /// Query heads.
    rows: usize,
    /// Groups of invocations that share a block's values by keys.
    slices: usize,
    /// Rows whose sums over the slices are made at once.
    batch: usize,
    /// Floats of memory for what invocations exchange.
    scratch: usize,
}

impl Shape {
    /// The most rows that fit into workgroup memory; `None` when not even one does.
    fn new(head_dim: usize, group: usize, invocations: usize, workgroup_bytes: usize) -> Option<Self> {
        let slices = floor_power_of_two(invocations / (head_dim / 8).max(1)).min(BLOCK);
        let lanes = invocations / BLOCK;
        let shapes =
            (group.div_ceil(ROWS)..=group).flat_map(|blocks| [2, 1].map(|batch| (group.div_ceil(blocks), batch)));
        let mut fitting = shapes.filter_map(|(rows, batch)| {
            let dots = rows * lanes * (BLOCK + 32 / lanes);
            let scratch = ((rows + 1) * head_dim).max(dots).max(batch * slices * head_dim);
            let floats = (rows + 2) * head_dim + scratch + rows * BLOCK + rows * 9 + slices * rows;
            let floats = floats + (rows + 1) * head_dim / 4;
            let shape = Self { invocations, rows, slices, batch: batch.min(rows), scratch };
            (floats * 4 <= workgroup_bytes).then_some(shape)
        });
        fitting.next().filter(|_| head_dim / 8 <= invocations)
    }

    fn constants(&self, kernel: &mut KernelBuilder, head_dim: usize) {
        let (chunks, lanes) = (head_dim / 8, self.invocations / BLOCK);
        kernel.u32("ROWS", self.rows).u32("SLICES", self.slices).u32("SCRATCH", self.scratch);
        kernel.u32("KEY_LANES", lanes).u32("KEY_STEPS", chunks.div_ceil(lanes));
        kernel.u32("VALUE_STEPS", BLOCK / self.slices).u32("SCORES", (self.rows * BLOCK).div_ceil(self.invocations));
        kernel.u32("HEAD_STEPS", ((self.rows + 1) * head_dim / 4).div_ceil(self.invocations));
        kernel.u32("BATCH_ROWS", self.batch).u32("BATCHES", self.rows.div_ceil(self.batch));
    }
}

fn attend(call: &Call<'_>, shape: &Shape, splits: usize) -> Result<Launch> {
    let (op, cx) = (call.op, call.cx);
    let mut kernel = KernelBuilder::new("attention_decode", &call.name(""));
    call.shape(&mut kernel, shape.invocations, call.inputs.norms.map(|(q, _)| q))?;
    call.cache_words(&mut kernel, true, true);
    shape.constants(&mut kernel, op.head_dim);
    kernel.f32("SCALE", op.scale);
    split_keys(call, &mut kernel, splits);
    for (name, input) in [("q", call.inputs.q), ("k", call.inputs.k), ("v", call.inputs.v)] {
        kernel.read(name, "vec4<f32>", Resource::Input(*input));
    }
    kernel.write("keys", "KvWord", Resource::Keys).write("values", "KvWord", Resource::Values);
    kernel.write("dst", "vec4<f32>", if splits > 1 { partials(call, splits) } else { Resource::Output(0) });
    kernel.launch([call.group.div_ceil(shape.rows), op.n_kv_heads, splits], &cx.caps)
}

fn merge(call: &Call<'_>, splits: usize) -> Result<Launch> {
    let head_4 = call.op.head_dim / 4;
    let invocations = head_4.next_power_of_two().max(128);
    let mut kernel = KernelBuilder::new("attention_merge", "");
    kernel.u32("WG", invocations).u32("HEADS", call.op.n_heads).u32("HEAD_4", head_4);
    kernel.u32("SLICES", invocations / head_4).u32("CAPACITY", call.cx.capacity).state();
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
