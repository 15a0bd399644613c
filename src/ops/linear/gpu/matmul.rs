//! `matmul`: matrix products with many tokens, bound by arithmetic. A workgroup makes a block of tokens by rows from
//! activations and weights staged in workgroup memory: on matrix units where there are some, else a tile of sums an
//! invocation.

use super::Call;
use crate::error::Result;
use crate::shader::{Caps, KernelBuilder, Launch};

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
        let tokens = tokens.next_power_of_two().clamp(16, 64);
        let step = if caps.f16 { 4 } else { 2 };
        Self { tokens, invocations: tokens / TILE_TOKENS * HALF / 2, step, stride: step * 2 + 1 }
    }
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
