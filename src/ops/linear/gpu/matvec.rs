//! `matvec`: matrix products with few tokens, bound by reading the matrix. Invocations share a tile of four rows, or a
//! few tiles where the activations become bytes.

use super::{BYTES, Call};
use crate::error::Result;
use crate::shader::{Caps, KernelBuilder, Launch, Resource, floor_power_of_two};

/// Invocations of a workgroup, unless a tile has more lanes.
const INVOCATIONS: usize = 128;
/// A subgroup of most GPUs: fewer lanes a tile would read scattered words.
const FEWEST_LANES: usize = 32;

/// Steps whose activations are staged in workgroup memory at most: 6 KiB.
const STAGED_STEPS: usize = 384;

/// Steps of an invocation, were there [`Caps::parallel`] of them, from which on activations become bytes in a dispatch
/// of their own.
const STEPS_BEFORE: usize = 80;

/// The kernel's file.
pub fn file(gated: bool) -> &'static str {
    if gated { "matvec_gated" } else { "matvec" }
}

/// The launch over `tiles` tiles, once everything is bound.
pub fn launch(call: &Call<'_>, kernel: &mut KernelBuilder, tiles: usize) -> Result<Launch> {
    // Few tiles get many lanes each, but a lane at least two steps.
    let fewest = if call.cx.caps.software { 1 } else { FEWEST_LANES };
    let lanes = floor_power_of_two(call.cx.caps.parallel / tiles.max(1)).clamp(fewest, 256);
    let lanes = lanes.min(floor_power_of_two(call.columns / 16));
    let invocations = lanes.max(INVOCATIONS);
    kernel.u32("WG", invocations).u32("LANES", lanes).part("lib/reduce");
    kernel.launch_flat(tiles.div_ceil(invocations / lanes), &call.cx.caps)
}

/// How the byte kernel walks a matrix, or two of equal shape.
pub struct Walk {
    matrices: usize,
    /// Invocations that share tiles.
    lanes: usize,
    /// Tiles of each matrix that they share.
    span: usize,
    /// Invocations of a workgroup.
    invocations: usize,
    /// Steps whose weights are asked for at once.
    unroll: usize,
    /// Whether a lane's next weights are asked for before it multiplies.
    ahead: bool,
    bytes: Bytes,
}

/// Where the activations become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bytes {
    /// In a dispatch before.
    Before,
    /// In every workgroup, once.
    Workgroup,
    /// In every lane, those of its steps.
    Lane,
}

/// Whether there are so many steps that a dispatch which turns the activations into bytes spares about what it costs.
pub fn quantizes_before(caps: &Caps, rows: usize, columns: usize) -> bool {
    caps.int8 && columns.is_multiple_of(32) && rows / 4 * (columns / 8) >= STEPS_BEFORE * caps.parallel
}

/// The launch that turns the activations of one token into bytes, normalized, and where they go.
pub fn quantize(call: &Call<'_>) -> Result<(Launch, Resource)> {
    let steps = call.columns / 8;
    let bytes = Resource::Scratch { index: BYTES, len: steps * 4 };
    let mut kernel = KernelBuilder::new("quantize_row", if call.norm.is_some() { "norm" } else { "" });
    kernel.u32("WG", floor_power_of_two(steps).min(256)).u32("K8", steps);
    call.norm(&mut kernel)?;
    kernel.read("x", "vec4<f32>", call.x).part("lib/x_exact").part("lib/x_int8").part("lib/bytes8").part("lib/total");
    kernel.write("dst", "vec4<u32>", bytes);
    Ok((kernel.launch([1, 1, 1], &call.cx.caps)?, bytes))
}

impl Walk {
    /// For a matrix of `tiles` tiles (of each of two matrices if `gated`) of `columns` columns, with activations that
    /// are bytes already if `quantized`.
    /// Few tiles need many lanes each to keep the device busy; where there are many, a lane with more tiles saves
    /// turning activations into bytes, and so does staging where rows are short. The borders were measured
    /// (docs/performance.md).
    pub fn new(caps: &Caps, tiles: usize, gated: bool, columns: usize, quantized: bool) -> Self {
        let (parallel, matrices) = (caps.parallel, 1 + usize::from(gated));
        let steps = columns.next_multiple_of(32) / 8;
        let (all, short) = (tiles * matrices, steps <= STAGED_STEPS);
        let (lanes, span, bytes) = if quantized {
            (32, 1, Bytes::Before)
        } else if all * 256 <= parallel {
            (256, 1, Bytes::Lane)
        } else if all * 128 <= parallel {
            if short { (128, 2, Bytes::Workgroup) } else { (256, 2, Bytes::Lane) }
        } else if all * 40 <= parallel {
            if short { (64, 2 / matrices, Bytes::Workgroup) } else { (128, 4, Bytes::Lane) }
        } else if all * 10 <= parallel {
            (64, 4 / matrices, Bytes::Lane)
        } else {
            (16, 6, Bytes::Lane)
        };
        let ahead = gated && lanes == 64 && bytes == Bytes::Lane;
        // Lanes without a step in the last round only wait.
        let lanes = if lanes == 256 && steps < 1024 && !steps.is_multiple_of(256) { 128 } else { lanes };
        let lanes = lanes.min(floor_power_of_two(steps));
        let most = match bytes {
            Bytes::Before => 4,
            _ if lanes == 256 => 2,
            _ => 1,
        };
        let unroll = [4, 2].into_iter().find(|&u| u <= most && steps.is_multiple_of(lanes * u)).unwrap_or(1);
        let invocations = match bytes {
            Bytes::Before => 32,
            Bytes::Workgroup => 256,
            Bytes::Lane => lanes.max(INVOCATIONS),
        };
        Self { matrices, lanes, span: span.min(8 / matrices), invocations, unroll, ahead, bytes }
    }

    /// The kernel's file.
    pub fn file(&self) -> &'static str {
        if self.ahead { "matvec_int8_ahead" } else { "matvec_int8" }
    }

    /// The launch over `tiles` tiles of each matrix, once everything is bound.
    pub fn launch(&self, call: &Call<'_>, kernel: &mut KernelBuilder, tiles: usize) -> Result<Launch> {
        kernel.u32("WG", self.invocations).u32("LANES", self.lanes).u32("UNROLL", self.unroll);
        kernel.u32("SPAN", self.span).u32("SUMS", self.span * self.matrices).part("lib/reduce_spans");
        kernel.part(if self.matrices == 2 { "lib/span_gated" } else { "lib/span_plain" });
        match self.bytes {
            Bytes::Before => kernel.part("lib/x_quantized"),
            Bytes::Workgroup => kernel.part("lib/x_int8").part("lib/x_staged"),
            Bytes::Lane => kernel.part("lib/x_int8").part("lib/x_direct"),
        };
        let spans = self.invocations / self.lanes * self.span;
        kernel.launch_flat(tiles.div_ceil(spans), &call.cx.caps)
    }
}
