//! `matmul`: matrix products with many tokens, bound by arithmetic. A workgroup makes a block of tokens by rows from
//! activations and weights staged in workgroup memory: on matrix units where there are some, else a tile of sums an
//! invocation, over packed bytes where those pay.

use super::{BYTES, Call, Kind, Product, SUMS};
use crate::error::Result;
use crate::quant::{Codes, PackedLayout};
use crate::shader::{Caps, KernelBuilder, Launch, Resource};

/// Rows of each half of a block.
const HALF: usize = 64;
/// Tokens of an invocation without matrix units.
const TILE_TOKENS: usize = 8;

/// What a workgroup makes and how it stages it.
struct Block {
    tokens: usize,
    invocations: usize,
    /// Steps of 8 columns staged at once.
    step: usize,
    /// Quads of columns from one staged row to the next.
    stride: usize,
}

impl Block {
    fn new(caps: &Caps, tokens: usize) -> Self {
        if caps.matrix {
            // Each of the invocations stages one step of one tile.
            return Self { tokens: 64, invocations: HALF / 2 * 4, step: 4, stride: 10 };
        }
        let step = if caps.f16 { 4 } else { 2 };
        Self { step, stride: step * 2 + 1, ..Self::of_bytes(tokens) }
    }

    /// Without matrix units: an invocation has [`TILE_TOKENS`] by two rows of each half.
    fn of_bytes(tokens: usize) -> Self {
        let tokens = tokens.next_power_of_two().clamp(16, 64);
        Self { tokens, invocations: tokens / TILE_TOKENS * HALF / 2, step: 4, stride: 0 }
    }
}

/// Whether products over bytes are the fastest for these capabilities.
pub fn takes_bytes(caps: &Caps, columns: usize) -> bool {
    caps.int8 && !caps.matrix && columns.is_multiple_of(32)
}

/// The launch that turns the activations into bytes, and where they go.
pub fn quantize(call: &Call<'_>) -> Result<(Launch, Resource)> {
    let blocks = call.tokens * call.columns / 32;
    let bytes = Resource::Scratch { index: BYTES, len: blocks * 12 };
    let mut kernel = KernelBuilder::new("quantize", "");
    kernel.u32("WG", 64).u32("K8", call.columns / 8).u32("TOKENS", call.tokens).state();
    kernel.read("x", "vec4<f32>", call.x).part("lib/x_exact").write("dst", "vec4<u32>", bytes);
    Ok((kernel.launch_flat(blocks.div_ceil(64), &call.cx.caps)?, bytes))
}

/// The kernel's file.
pub fn file(caps: &Caps) -> &'static str {
    if caps.matrix { "matmul_matrix" } else { "matmul" }
}

/// Workgroups that keep the device busy, as a share of [`Caps::parallel`], and the most splits of the columns that they
/// are reached with: each costs memory and a read of its sums.
const WORKGROUPS_SHARE: usize = 768;
const MOST_SPLITS: usize = 8;
/// Fewest steps of 8 columns of a split.
const SPLIT_STEPS: usize = 32;

/// The launches of a product whose weights and activations are bound: one, or splits of the columns and what puts them
/// together where there are too few rows and tokens to keep the device busy.
pub fn launches(
    call: &Call<'_>,
    mut kernel: KernelBuilder,
    (product, tiles, layout): (&Product<'_>, usize, PackedLayout),
    launches: &mut Vec<Launch>,
) -> Result<()> {
    let caps = &call.cx.caps;
    let int8 = matches!(call.kind(layout), Kind::MatmulInt8);
    let block = if int8 { Block::of_bytes(call.tokens) } else { Block::new(caps, call.tokens) };
    let rows = tiles * if product.gated { 8 } else { 4 };
    let grid = [call.tokens.div_ceil(block.tokens), rows.div_ceil(2 * HALF)];
    let steps = call.columns.next_multiple_of(32) / 8;
    let share = if product.gated { steps } else { split_steps(caps, grid[0] * grid[1], steps) };
    let splits = steps.div_ceil(share);
    kernel.u32("SPLIT_8", share).part("lib/split").state();
    kernel.u32("WG", block.invocations).u32("BM", block.tokens).u32("HALF", HALF);
    if int8 {
        bytes(&mut kernel, layout)
    } else {
        staged(&mut kernel, caps, &block)
    }
    kernel.part(if product.gated { "lib/put_gated" } else { "lib/put_plain" });
    let sums = Resource::Scratch { index: SUMS, len: splits * call.tokens * tiles * 4 };
    if splits == 1 {
        call.stores(&mut kernel, product)?;
        if !product.gated {
            kernel.part("lib/row_stored");
        }
    } else {
        kernel.write("sums", "f32", sums).part("lib/row_split");
    }
    launches.push(kernel.launch([grid[0], grid[1], splits], caps)?);
    if splits > 1 {
        launches.push(merge(call, product, (tiles, splits, sums))?);
    }
    Ok(())
}

/// Steps of 8 columns that a workgroup takes when there are `workgroups` of them for all.
fn split_steps(caps: &Caps, workgroups: usize, steps: usize) -> usize {
    let wanted = (caps.parallel / WORKGROUPS_SHARE / workgroups.max(1)).clamp(1, MOST_SPLITS);
    let splits = wanted.min(steps / SPLIT_STEPS).max(1);
    steps.div_ceil(splits).next_multiple_of(4)
}

fn merge(call: &Call<'_>, product: &Product<'_>, (tiles, splits, sums): (usize, usize, Resource)) -> Result<Launch> {
    let mut kernel = KernelBuilder::new("matmul_merge", &call.stores_name(product));
    kernel.u32("WG", 128).u32("TOKENS", call.tokens).u32("TILES", tiles).u32("SPLITS", splits);
    kernel.state().read("sums", "f32", sums).part("lib/row_stored");
    call.stores(&mut kernel, product)?;
    kernel.launch_flat((call.tokens * tiles * 4).div_ceil(128), &call.cx.caps)
}

/// Staging for sums of floats.
fn staged(kernel: &mut KernelBuilder, caps: &Caps, block: &Block) {
    if caps.matrix {
        kernel.enable("wgpu_cooperative_matrix");
        // Quads of activations that an invocation stages.
        kernel.u32("QUADS", block.tokens * block.step * 2 / block.invocations);
    } else {
        kernel.part("lib/put_lane").part("lib/sums8");
    }
    if caps.f16 {
        kernel.enable("f16").part("lib/quad_f16");
    } else {
        kernel.part("lib/quad_f32");
    }
    kernel.u32("STEP", block.step).u32("STRIDE", block.stride).part("lib/stage");
}

/// What products of bytes need to know of a layout.
fn bytes(kernel: &mut KernelBuilder, layout: PackedLayout) {
    let (signed, group) = match layout {
        PackedLayout::Coded { codes, group, .. } => (codes == Codes::B8, group),
        _ => (false, 32),
    };
    kernel.u32("FLIP", if signed { 0x8080_8080 } else { 0 }).f32("SHIFT", if signed { 128.0 } else { 0.0 });
    kernel.bool("HALVES_DIFFER", group < 32).part("lib/put_lane").part("lib/sums8");
}
