//! `matmul`: matrix products with many tokens, bound by arithmetic. A workgroup makes a block of tokens by rows from
//! activations and weights staged in workgroup memory: on matrix units where there are some, else a tile of sums an
//! invocation, over packed bytes where those pay.

use super::{BYTES, Call};
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
        let tokens = tile_tokens(tokens);
        let step = if caps.f16 { 4 } else { 2 };
        Self { tokens, invocations: tile_invocations(tokens), step, stride: step * 2 + 1 }
    }
}

/// Tokens of a workgroup without matrix units.
fn tile_tokens(tokens: usize) -> usize {
    tokens.next_power_of_two().clamp(16, 64)
}

/// Invocations that make so many tokens: each has [`TILE_TOKENS`] by two rows of each half.
fn tile_invocations(tokens: usize) -> usize {
    tokens / TILE_TOKENS * HALF / 2
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

/// The launch over `tiles` tiles, once everything is bound.
pub fn launch(call: &Call<'_>, kernel: &mut KernelBuilder, tiles: usize, gated: bool) -> Result<Launch> {
    let caps = &call.cx.caps;
    let block = Block::new(caps, call.tokens);
    let rows = tiles * if gated { 8 } else { 4 };
    if caps.matrix {
        kernel.enable("wgpu_cooperative_matrix");
        // Quads of activations that an invocation stages.
        kernel.u32("QUADS", block.tokens * block.step * 2 / block.invocations);
    } else {
        kernel.part("lib/put_lane");
    }
    if caps.f16 {
        kernel.enable("f16").part("lib/quad_f16");
    } else {
        kernel.part("lib/quad_f32");
    }
    kernel.u32("WG", block.invocations).u32("BM", block.tokens).u32("HALF", HALF);
    kernel.u32("STEP", block.step).u32("STRIDE", block.stride);
    kernel.state().part("lib/stage").part(if gated { "lib/put_gated" } else { "lib/put_plain" });
    kernel.launch([call.tokens.div_ceil(block.tokens), rows.div_ceil(2 * HALF), 1], caps)
}

/// The same over bytes.
pub fn launch_int8(
    call: &Call<'_>,
    kernel: &mut KernelBuilder,
    tiles: usize,
    (layout, gated): (PackedLayout, bool),
) -> Result<Launch> {
    let tokens = tile_tokens(call.tokens);
    let rows = tiles * if gated { 8 } else { 4 };
    let (signed, group) = match layout {
        PackedLayout::Coded { codes, group, .. } => (codes == Codes::B8, group),
        _ => (false, 32),
    };
    kernel.u32("WG", tile_invocations(tokens)).u32("BM", tokens).u32("HALF", HALF);
    kernel.u32("FLIP", if signed { 0x8080_8080 } else { 0 }).f32("SHIFT", if signed { 128.0 } else { 0.0 });
    kernel.bool("HALVES_DIFFER", group < 32);
    kernel.state().part("lib/put_lane").part(if gated { "lib/put_gated" } else { "lib/put_plain" });
    kernel.launch([call.tokens.div_ceil(tokens), rows.div_ceil(2 * HALF), 1], &call.cx.caps)
}
