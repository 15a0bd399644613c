//! `matmul`: matrix products with many tokens, bound by arithmetic. A workgroup makes a block of tokens by rows from
//! activations and weights staged in workgroup memory.

use super::Call;
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch};

/// Rows of a workgroup, in tiles.
const TILES: usize = 16;

/// The kernel's file.
pub fn file(gated: bool) -> &'static str {
    if gated { "matmul_gated" } else { "matmul" }
}

/// The launch over `tiles` tiles, once everything is bound.
pub fn launch(call: &Call<'_>, kernel: &mut KernelBuilder, tiles: usize, gated: bool) -> Result<Launch> {
    let tokens = call.tokens.next_power_of_two().clamp(16, 64);
    kernel.u32("WG", tokens / 4 * TILES).u32("BM", tokens);
    kernel.u32("STEP", if gated { 2 } else { 4 }).u32("MATRICES", 1 + usize::from(gated));
    kernel.state().part("lib/stage");
    kernel.launch([tiles.div_ceil(TILES), call.tokens.div_ceil(tokens), 1], &call.cx.caps)
}
