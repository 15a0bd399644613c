//! The instruction sets the kernels are written for, behind one trait. An implementation says how to load, dot and
//! scale registers; it knows no matrix, no loop and no thread. The algorithms in the parent are generic over it.
//!
//! How unsafety is fenced: every method here is `unsafe` and inlined; only the tables made by `kernel_table!` call
//! the generic algorithms, from functions compiled with the instruction set enabled, and a table is handed out only
//! after the processor was asked for it ([`super::Kernels::available`]).

#![allow(unsafe_code)]

use super::activations::{BLOCK, Code};
use super::quantize::quantize_block;

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

pub(super) use scalar::Scalar;

#[cfg(target_arch = "aarch64")]
pub(super) use neon::Neon;
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
pub(super) use simd128::sums_by_pairs;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use simd128::{Simd128, hide_constants};
#[cfg(target_arch = "x86_64")]
pub(super) use {avx2::Avx2, avx512::Avx512};

/// Start of the same plane for each of up to four tiles that one register spans. Entries past the tiles that exist
/// repeat the last one: their results are computed and dropped.
pub(super) type TilePointers = [*const u8; 4];

/// [`Isa::WIDE_FROM`] where every width of codes meets 8-bit activations.
pub(super) const NEVER_WIDE: usize = usize::MAX;

/// Registers and operations of one instruction set.
///
/// A code register `W` holds one byte for 4 columns of `4 * TILES` rows: dword `r` belongs to row `r` of the block.
///
/// # Safety
/// Every method requires that the processor has the instruction set, and that pointers are readable (writable for
/// `store`) for the lengths stated; none needs alignment.
pub(super) trait Isa {
    /// Tiles of four rows that one register spans: 1, 2 or 4.
    const TILES: usize;
    /// Activation rows that a matmul block keeps in registers at once: 1, 4 or 8.
    const COLUMNS: usize;
    /// `COLUMNS` as two answers, so that blocks of other sizes are not even compiled.
    const ONE_COLUMN: bool = Self::COLUMNS == 1;
    /// As above.
    const EIGHT_COLUMNS: bool = Self::COLUMNS == 8;
    /// What is added to a signed 8-bit code to make it a legal operand of `dot`.
    const B8_ZERO: i32;
    /// Codes of at least so many bits meet activations in 16 bits, narrower ones activations in 8.
    const WIDE_FROM: usize = NEVER_WIDE;
    /// Whether there is [`Isa::centred16`].
    const CENTRES: bool = false;
    /// `f32` lanes of a register.
    const LANES: usize = 4 * Self::TILES;

    /// Codes.
    type W: Copy;
    /// Integer sums in progress.
    type Acc: Copy;
    /// `LANES` floats.
    type F: Copy;

    /// Loads `V` consecutive 16-byte words at `offset` of every tile: register `i` holds word `i` of all tiles.
    unsafe fn load_words<const V: usize>(tiles: &TilePointers, offset: usize) -> [Self::W; V];
    /// Asks for the cache line at `from`, which need not be readable. Nothing where there is no such instruction.
    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        let _ = from;
    }
    /// `(w >> right) & mask` on bytes, with a left shift when `right` is negative. `mask` drops what crossed a byte.
    unsafe fn bits(w: Self::W, right: i32, mask: u8) -> Self::W;
    /// Bitwise or.
    unsafe fn or(a: Self::W, b: Self::W) -> Self::W;
    /// Adds `B8_ZERO` to signed bytes.
    unsafe fn bias_b8(w: Self::W) -> Self::W;

    /// No sum yet.
    unsafe fn zero_acc() -> Self::Acc;
    /// Adds the products of 16 columns: byte `j` of `w[i]` with activation `4 * i + j`.
    /// `x` holds 16 readable activations: i16 when `BITS >= WIDE_FROM`, else i8.
    unsafe fn dot16<const BITS: usize>(acc: Self::Acc, w: [Self::W; 4], x: *const u8) -> Self::Acc;
    /// As `dot16` from no sum, of symmetric codes less their centre `1 << (BITS - 1)`, for activations of 8 bits. `pairs` are
    /// their sums, as `QuantizedRows` keeps them. Without `CENTRES` nobody calls it, and nothing is taken off.
    #[inline(always)]
    unsafe fn centred16<const BITS: usize>(w: [Self::W; 4], x: *const u8, pairs: *const [i16; 2]) -> Self::Acc {
        let _ = pairs;
        // SAFETY: the caller's promise.
        unsafe { Self::dot16::<BITS>(Self::zero_acc(), w, x) }
    }
    /// As `dot16`, for 32 columns.
    #[inline(always)]
    unsafe fn dot32<const BITS: usize>(w: [Self::W; 8], x: *const u8) -> Self::Acc {
        // SAFETY: the caller's promise.
        unsafe { Self::two_halves::<BITS>(w, x) }
    }
    /// 32 columns as twice 16.
    #[inline(always)]
    unsafe fn two_halves<const BITS: usize>(w: [Self::W; 8], x: *const u8) -> Self::Acc {
        let half = if BITS >= Self::WIDE_FROM { 32 } else { 16 };
        // SAFETY: the caller's promise, for 32 columns.
        unsafe {
            let acc = Self::dot16::<BITS>(Self::zero_acc(), [w[0], w[1], w[2], w[3]], x);
            Self::dot16::<BITS>(acc, [w[4], w[5], w[6], w[7]], x.add(half))
        }
    }
    /// The sums as floats, one lane per row.
    unsafe fn finish(acc: Self::Acc) -> Self::F;
    /// The scales of every tile's four rows: four f16 at `offset` of each tile.
    unsafe fn scales(tiles: &TilePointers, offset: usize) -> Self::F;
    /// Scales and biases: four pairs of f16 at `offset` of each tile.
    unsafe fn affine_scales(tiles: &TilePointers, offset: usize) -> (Self::F, Self::F);

    /// Writes the codes of 32 values; answers their scale and the sums of either half's codes. The same on every processor; if
    /// a value is not finite, the scale is no number.
    #[inline(always)]
    unsafe fn quantize32<T: Code>(values: &[f32; BLOCK], codes: &mut [T; BLOCK]) -> (f32, [i32; 2]) {
        quantize_block(values, codes)
    }

    /// `LANES` equal values.
    unsafe fn splat(value: f32) -> Self::F;
    /// Reads `LANES` floats.
    unsafe fn load(from: *const f32) -> Self::F;
    /// Reads `LANES` f16.
    unsafe fn load_f16(from: *const u16) -> Self::F;
    /// Writes `LANES` floats.
    unsafe fn store(to: *mut f32, value: Self::F);
    /// Product.
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, fused where the processor fuses.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The sums of four registers' lanes, in a fixed order.
    unsafe fn sum4(values: [Self::F; 4]) -> [f32; 4];
}
