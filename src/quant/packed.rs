//! The packed layout shared by the GPU and CPU kernels: tiles of four rows whose codes lie together,
//! with scales in a plane of their own. One 16-byte word is one load in WGSL and in SIMD.

/// Width of the integer codes of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codes {
    /// Unsigned 2-bit codes.
    B2,
    /// Unsigned 3-bit codes: a 2-bit plane and a 1-bit plane.
    B3,
    /// Unsigned 4-bit codes.
    B4,
    /// Unsigned 5-bit codes: a nibble plane and a 1-bit plane.
    B5,
    /// Unsigned 6-bit codes: a nibble plane and a 2-bit plane.
    B6,
    /// Signed 8-bit codes.
    B8,
}

/// How a weight matrix lies in memory for the kernels.
///
/// For codes, rows come in tiles of 4 (the last tile padded with zeros), columns in order, and
/// `value = scale * code + bias`, with `bias = -zero * scale` when not `affine`.
///
/// Planes, as little-endian `u32` words; `t` is the tile, `K` the columns:
///
/// * nibble plane (B4, B5, B6): 16 bytes = 4 rows x 8 columns at `(t * K/8 + k/8)`; word `r` belongs to row
///   `4t + r`; byte `j` of it holds column `k0 + j` in its low nibble and `k0 + 4 + j` in its high nibble.
/// * 2-bit plane (B2, B3: the low bits; B6: bits 4..6): 16 bytes = 4 rows x 16 columns at `(t * K/16 + k/16)`;
///   byte `j` of word `r` holds columns `k0 + j`, `k0 + 4 + j`, `k0 + 8 + j`, `k0 + 12 + j`, from the lowest bits up.
/// * 1-bit plane (B3: bit 2; B5: bit 4): 16 bytes = 4 rows x 32 columns at `(t * K/32 + k/32)`;
///   bit `i` of byte `j` of word `r` is column `k0 + 4 * i + j`.
/// * byte plane (B8): 16 bytes = 4 rows x 4 columns at `(t * K/4 + k/4)`; byte `j` of word `r` is column `k0 + j`.
/// * scale plane: per tile and group (`t * K/group + k/group`), not affine: 8 bytes, 4 x f16 scale of rows 0..4;
///   affine: 16 bytes, word `r` = f16 scale of row `4t + r` in the low half, f16 bias in the high half.
///
/// A columns count that is no multiple of a plane's span (8, 16, 32) is padded with zero codes up to `group`,
/// and `group` is at least the span of the widest plane or divides it evenly: [`PackedLayout::padded_columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PackedLayout {
    /// Row-major `f32`.
    F32,
    /// Row-major `f16` pairs in `u32` words; odd column counts are padded by one zero.
    F16,
    /// Integer codes with a scale (and a bias) per group of `group` columns.
    Coded {
        /// Width of a code.
        codes: Codes,
        /// Columns that share a scale: 16, 32, 64 or 128, or a whole row padded to 32.
        group: usize,
        /// Whether each group has a bias of its own.
        affine: bool,
    },
}

impl Codes {
    /// Bits of a code.
    #[must_use]
    pub fn bits(self) -> usize {
        match self {
            Self::B2 => 2,
            Self::B3 => 3,
            Self::B4 => 4,
            Self::B5 => 5,
            Self::B6 => 6,
            Self::B8 => 8,
        }
    }

    /// The code of value zero in a layout without biases.
    #[must_use]
    pub fn zero(self) -> i32 {
        match self {
            Self::B8 => 0,
            _ => 1 << (self.bits() - 1),
        }
    }

    /// Bits per code of each plane, in the order they are stored: `(low plane, high plane)`; 0 when there is none.
    #[must_use]
    pub fn planes(self) -> (usize, usize) {
        match self {
            Self::B2 => (2, 0),
            Self::B3 => (2, 1),
            Self::B4 => (4, 0),
            Self::B5 => (4, 1),
            Self::B6 => (4, 2),
            Self::B8 => (8, 0),
        }
    }
}

impl PackedLayout {
    /// Columns as stored: `columns` rounded up to 32 for codes (and to whole groups), to 2 for f16.
    #[must_use]
    pub fn padded_columns(self, columns: usize) -> usize {
        match self {
            Self::F32 => columns,
            Self::F16 => columns.next_multiple_of(2),
            Self::Coded { group, .. } => columns.next_multiple_of(group.max(32)),
        }
    }

    /// A short name for logs and kernels: `b4g32`, `b4g32a` (affine), `f16`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::F32 => "f32".to_owned(),
            Self::F16 => "f16".to_owned(),
            Self::Coded { codes, group, affine } => {
                format!("b{}g{group}{}", codes.bits(), if affine { "a" } else { "" })
            }
        }
    }

    /// Bytes of the planes `(low or dense, high, scales)` for a matrix; rows are rounded up to whole tiles for codes.
    #[must_use]
    pub fn plane_bytes(self, rows: usize, columns: usize) -> [usize; 3] {
        let columns = self.padded_columns(columns);
        match self {
            Self::F32 => [rows * columns * 4, 0, 0],
            Self::F16 => [rows * columns * 2, 0, 0],
            Self::Coded { codes, group, affine } => {
                let rows = rows.next_multiple_of(4);
                let (low, high) = codes.planes();
                let scale = if affine { 4 } else { 2 };
                // Rows come last, so that nothing passes the bytes themselves: addresses may have 32 bits.
                [rows * (columns * low / 8), rows * (columns * high / 8), rows * (columns / group * scale)]
            }
        }
    }
}

/// Packed consecutive rows of one matrix: what a backend stores. A part starts at a multiple of 4 rows,
/// so parts of a matrix are concatenated plane by plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedRows {
    /// The layout of the planes.
    pub layout: PackedLayout,
    /// Rows held, before padding to tiles.
    pub rows: usize,
    /// Columns, before padding.
    pub columns: usize,
    /// Dense values, or the low plane of the codes.
    pub low: Vec<u32>,
    /// The high plane of the codes; empty when the layout has none.
    pub high: Vec<u32>,
    /// The scale plane; empty for dense layouts.
    pub scales: Vec<u32>,
}
