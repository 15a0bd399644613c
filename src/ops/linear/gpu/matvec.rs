//! `matvec`: matrix products with few tokens, bound by reading the matrix. Invocations share a tile of four rows.

use super::Call;
use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, floor_power_of_two};

/// Invocations of a workgroup, unless a tile has more lanes.
const INVOCATIONS: usize = 128;
/// A subgroup of most GPUs: fewer lanes a tile would read scattered words.
const FEWEST_LANES: usize = 32;

/// The kernel's file.
pub fn file(gated: bool) -> &'static str {
    if gated { "matvec_gated" } else { "matvec" }
}

/// The launch over `tiles` tiles, once everything is bound.
pub fn launch(call: &Call<'_>, kernel: &mut KernelBuilder, tiles: usize) -> Result<Launch> {
    // Few tiles get many lanes each, but a lane at least two steps.
    let parallel = call.cx.caps.parallel;
    let fewest = FEWEST_LANES.min(floor_power_of_two(parallel / 1024));
    let lanes = floor_power_of_two(parallel / tiles.max(1)).clamp(fewest, 256);
    let lanes = lanes.min(floor_power_of_two(call.columns / 16));
    let invocations = lanes.max(INVOCATIONS);
    kernel.u32("WG", invocations).u32("LANES", lanes).part("lib/reduce");
    kernel.launch_flat(tiles.div_ceil(invocations / lanes), &call.cx.caps)
}
