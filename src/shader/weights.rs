//! How a kernel reads a weight matrix of any layout: constants for where its planes lie, and the parts that decode it.

use super::builder::KernelBuilder;
use super::launch::{Resource, WeightPart};
use crate::quant::{Codes, PackedLayout};

/// Columns of a matrix as device buffers hold them.
#[must_use]
pub fn device_columns(layout: PackedLayout, columns: usize) -> usize {
    layout.padded_columns(columns).next_multiple_of(32)
}

/// First 16-byte words of the planes (low or dense, high, scales) in a buffer of `tiles` tiles of `columns` device
/// columns, and the end.
#[must_use]
pub fn device_planes(layout: PackedLayout, tiles: usize, columns: usize) -> [usize; 4] {
    let [low, high, scales] = layout.plane_bytes(tiles * 4, columns).map(|bytes| bytes.div_ceil(16));
    [0, low, low + high, low + high + scales]
}

impl KernelBuilder {
    /// Binds one part of the weight matrix `input` as `weights` (and, where groups have no bias, as `tile_scales` too)
    /// and adds what decodes it.
    /// Constants: `K8` (steps of 8 columns), `TILE_0` (the part's first tile).
    pub fn weights(
        &mut self,
        input: usize,
        part: (usize, &WeightPart),
        layout: PackedLayout,
        columns: usize,
    ) -> &mut Self {
        let (index, part) = part;
        let columns = device_columns(layout, columns);
        let [_, high, scales, _] = device_planes(layout, part.buffer_tiles, columns);
        self.read("weights", "vec4<u32>", Resource::Weight { input, part: index });
        let rows = layout.plane_bytes(4, columns).iter().sum::<usize>() / 4;
        self.reads_weights((part.rows * rows) as u64);
        self.u32("K8", columns / 8).u32("TILE_0", part.at);
        match layout {
            PackedLayout::F32 => self.part("quant/f32").part("lib/dense"),
            PackedLayout::F16 => self.part("quant/f16").part("lib/dense"),
            PackedLayout::Coded { codes, group, affine } => {
                self.u32("HIGH_AT", high).u32("SCALES_AT", scales);
                self.u32("GROUP_8", group / 8).u32("GROUPS", columns / group);
                // 8-bit codes are signed in memory and made unsigned when read.
                self.f32("ZERO", if codes == Codes::B8 { 128.0 } else { codes.zero() as f32 });
                self.f32("AFFINE_ZERO", if codes == Codes::B8 { 128.0 } else { 0.0 });
                self.part(codes_part(codes)).part("lib/coded");
                if affine {
                    return self.part("lib/scales_affine");
                }
                // A second view of the same bytes: a load of 16 would bring the scales of a group that is not asked for.
                self.read("tile_scales", "vec2<u32>", Resource::Weight { input, part: index }).part("lib/scales_plain")
            }
        }
    }

    /// After [`KernelBuilder::weights`], adds products of its codes with activations as bytes.
    pub fn bytes_products(&mut self, layout: PackedLayout) -> &mut Self {
        let PackedLayout::Coded { codes, affine, .. } = layout else { return self };
        // The product takes signed bytes: codes of 8 bits are made signed again, which moves their zero by 128.
        let (flip, moved) = if codes == Codes::B8 { (0x8080_8080, 128) } else { (0, 0) };
        let zero = match (affine, codes) {
            (true, _) => 0,
            (false, Codes::B8) => 128,
            (false, codes) => codes.zero(),
        };
        self.u32("FLIP", flip).i32("ZERO_CODE", zero - moved).part("lib/bytes8").part("lib/w_dots");
        self.part(if affine { "lib/products_affine" } else { "lib/products_plain" })
    }
}

fn codes_part(codes: Codes) -> &'static str {
    match codes {
        Codes::B2 => "quant/b2",
        Codes::B3 => "quant/b3",
        Codes::B4 => "quant/b4",
        Codes::B5 => "quant/b5",
        Codes::B6 => "quant/b6",
        Codes::B8 => "quant/b8",
    }
}
