//! `matmul`: matrix products with many tokens, bound by arithmetic. A workgroup makes a block of tokens by rows from
//! activations and weights staged in workgroup memory: on matrix units where there are some, else a tile of sums an
//! invocation.

use super::Call;
use crate::error::Result;
use crate::shader::{Caps, KernelBuilder, Launch};

/// Tokens of a subgroup on matrix units; rows of each half.
const MATRIX_TOKENS: usize = 64;
const MATRIX_ROWS: usize = 16;
/// Tokens of an invocation without matrix units.
const TILE_TOKENS: usize = 8;
/// Workgroups that fill the device on matrix units; blocks get smaller until there are as many.
const MATRIX_WORKGROUPS: usize = 192;

/// What a workgroup makes and how it stages it.
struct Block {
    /// Tokens.
    tokens: usize,
    /// Rows of each half.
    half: usize,
    invocations: usize,
    /// Steps of 8 columns staged at once.
    step: usize,
    /// Quads of columns from one staged row to the next.
    stride: usize,
}

impl Block {
    fn on_matrix_units(tokens: usize, rows: usize) -> Self {
        let sizes = [(128, 64), (64, 64), (64, 32)];
        let workgroups = |(block, half): (usize, usize)| tokens.div_ceil(block) * rows.div_ceil(2 * half);
        let fills = |size: &(usize, usize)| tokens > size.0 / 2 && workgroups(*size) >= MATRIX_WORKGROUPS;
        let (block, half) = sizes.into_iter().find(fills).unwrap_or((64, 32));
        let invocations = block / MATRIX_TOKENS * half / MATRIX_ROWS * 32;
        Self { tokens: block, half, invocations, step: 4, stride: 10 }
    }

    fn of_tiles(caps: &Caps, tokens: usize) -> Self {
        let block = tokens.next_power_of_two().clamp(16, 64);
        let (half, step) = (64, if caps.f16 { 4 } else { 2 });
        Self { tokens: block, half, invocations: block / TILE_TOKENS * half / 2, step, stride: step * 2 + 1 }
    }
}

/// The kernel's file.
pub fn file(caps: &Caps) -> &'static str {
    if caps.matrix { "matmul_matrix" } else { "matmul" }
}

/// The launch over `tiles` tiles, once everything is bound.
pub fn launch(call: &Call<'_>, kernel: &mut KernelBuilder, tiles: usize, gated: bool) -> Result<Launch> {
    let caps = &call.cx.caps;
    let rows = tiles * if gated { 8 } else { 4 };
    let block = if caps.matrix { Block::on_matrix_units(call.tokens, rows) } else { Block::of_tiles(caps, call.tokens) };
    if caps.matrix {
        kernel.enable("wgpu_cooperative_matrix");
    }
    if caps.f16 {
        kernel.enable("f16").part("lib/quad_f16");
    } else {
        kernel.part("lib/quad_f32");
    }
    kernel.u32("WG", block.invocations).u32("BM", block.tokens).u32("HALF", block.half);
    kernel.u32("STEP", block.step).u32("STRIDE", block.stride);
    kernel.state().part("lib/stage").part(if gated { "lib/put_gated" } else { "lib/put_plain" });
    kernel.launch([call.tokens.div_ceil(block.tokens), rows.div_ceil(2 * block.half), 1], caps)
}
