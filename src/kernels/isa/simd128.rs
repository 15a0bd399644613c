//! WASM SIMD128. Built with relaxed SIMD, a weight word meets its activations in one dot instruction: the codes of
//! 2 to 6 bits are its second operand, which the specification leaves exact only below 128. Where the processor has no such
//! instruction, [`sums_by_pairs`] answers so, and products are summed in 16 bits as long as that cannot overflow. Without
//! relaxed SIMD, and for 8-bit codes always, words are widened to 16 bits and multiplied with activations kept in 16 bits.

#![allow(unsafe_code)]
#![allow(unsafe_op_in_unsafe_fn, reason = "each body is a few intrinsics under the promises of the trait")]

use std::arch::wasm32::{
    f32x4_abs, f32x4_add, f32x4_convert_i32x4, f32x4_extract_lane, f32x4_mul, f32x4_splat, i8x16_narrow_i16x8,
    i16x8_extend_high_i8x16, i16x8_extend_low_i8x16, i16x8_narrow_i32x4, i32x4_add, i32x4_dot_i16x8,
    i32x4_extend_low_i16x8, i32x4_extract_lane, i32x4_max, i32x4_shl, i32x4_shr, i32x4_shuffle, i32x4_splat, i32x4_sub,
    u16x8_shl, u16x8_shr, v128, v128_and, v128_load, v128_load64_splat, v128_load64_zero, v128_or, v128_store,
};
#[cfg(target_feature = "relaxed-simd")]
use std::arch::wasm32::{
    f32x4_relaxed_madd, i8x16_splat, i16x8_add, i16x8_relaxed_dot_i8x16_i7x16, i16x8_shr, i16x8_sub,
    i32x4_relaxed_dot_i8x16_i7x16_add, v128_load32_splat,
};

use std::cell::UnsafeCell;

use super::{Isa, TilePointers};
use crate::kernels::activations::{BLOCK, Code};
use crate::kernels::elementwise::ROUNDER;
use crate::kernels::quantize::scale_of;

/// 128-bit SIMD of WebAssembly; with `PAIRS`, relaxed dots give sums of two products in 16 bits, else of four in 32.
pub(in crate::kernels) struct Simd128<const PAIRS: bool>;

/// Sums in progress: `rows` has a lane per row; `low` and `high` have two partial lanes for rows 0, 1 and 2, 3.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Sums {
    rows: v128,
    low: v128,
    high: v128,
}

/// Vectors that loops use again and again. V8 builds a constant in three instructions wherever it stands in a loop's body; what
/// is read from memory that may change is read once before the loop, or is an operand there.
#[repr(align(16))]
struct Constants {
    /// Entry `m`: the byte `m` 16 times.
    masks: [[u8; 16]; 64],
    #[cfg(target_feature = "relaxed-simd")]
    ones: [i16; 8],
    /// The bits of an f16 among those of an f32 with the same sign and mantissa.
    half_bits: [u32; 4],
    /// What makes up for the smaller bias of an f16's exponent: 2^112.
    half_scale: [f32; 4],
    rounder: [f32; 4],
}

/// The cell alone keeps the compiler from taking the values for constants, once [`hide_constants`] was called: nothing writes them.
struct Hidden(UnsafeCell<Constants>);

// SAFETY: nothing writes it.
unsafe impl Sync for Hidden {}

static CONSTANTS: Hidden = Hidden(UnsafeCell::new(Constants {
    masks: {
        let mut masks = [[0; 16]; 64];
        let mut mask = 0;
        while mask < masks.len() {
            masks[mask] = [mask as u8; 16];
            mask += 1;
        }
        masks
    },
    #[cfg(target_feature = "relaxed-simd")]
    ones: [1; 8],
    half_bits: [0x8FFF_FFFF; 4],
    half_scale: [f32::from_bits(0x7780_0000); 4],
    rounder: [ROUNDER; 4],
}));

/// Lets the compiler lose sight of [`CONSTANTS`].
pub(in crate::kernels) fn hide_constants() {
    std::hint::black_box(&CONSTANTS);
}

/// Reads one of the [`CONSTANTS`].
macro_rules! constant {
    ($($place:tt)+) => {
        v128_load((&raw const (*CONSTANTS.0.get()).$($place)+).cast())
    };
}

/// f16 bits in the low 16 bits of each lane, sign extended above, to f32. Exact for finite values.
#[inline(always)]
unsafe fn half_lanes(bits: v128) -> v128 {
    f32x4_mul(v128_and(i32x4_shl(bits, 13), constant!(half_bits)), constant!(half_scale))
}

/// Codes times 16-bit activations, into the partial lanes.
#[inline(always)]
unsafe fn dot_wide(mut acc: Sums, w: [v128; 4], wide: *const i16) -> Sums {
    for (i, &word) in w.iter().enumerate() {
        let x = v128_load64_splat(wide.add(4 * i).cast());
        acc.low = i32x4_add(acc.low, i32x4_dot_i16x8(i16x8_extend_low_i8x16(word), x));
        acc.high = i32x4_add(acc.high, i32x4_dot_i16x8(i16x8_extend_high_i8x16(word), x));
    }
    acc
}

#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
unsafe fn dot_narrow(mut acc: Sums, w: [v128; 4], codes: *const i8) -> Sums {
    for (i, &word) in w.iter().enumerate() {
        let x = v128_load32_splat(codes.add(4 * i).cast());
        acc.rows = i32x4_relaxed_dot_i8x16_i7x16_add(x, word, acc.rows);
    }
    acc
}

/// Codes times activations, summed by pairs in 16 bits.
#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
unsafe fn pairs_of<const WORDS: usize>(w: &[v128], codes: *const i8) -> v128 {
    let mut sums = i16x8_relaxed_dot_i8x16_i7x16(v128_load32_splat(codes.cast()), w[0]);
    for i in 1..WORDS {
        sums = i16x8_add(sums, i16x8_relaxed_dot_i8x16_i7x16(v128_load32_splat(codes.add(4 * i).cast()), w[i]));
    }
    sums
}

/// Sums neighbouring 16-bit sums into 32 bits.
#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
unsafe fn widen(mut acc: Sums, sums: v128) -> Sums {
    acc.rows = i32x4_add(acc.rows, i32x4_dot_i16x8(sums, constant!(ones)));
    acc
}

/// Whether a dot of four products is made of three instructions here: of bytes to pairs in 16 bits, of pairs, and a sum.
/// It shows in an operand that the specification leaves open: 255 times 127 twice is more than 16 bits hold, so that it
/// saturates, where a processor with a dot of four adds four times 255 or -1 times 127 in 32 bits.
#[cfg(target_feature = "relaxed-simd")]
pub(in crate::kernels) fn sums_by_pairs() -> bool {
    let operands = std::hint::black_box((i8x16_splat(127), i8x16_splat(-1)));
    let dots = i32x4_relaxed_dot_i8x16_i7x16_add(operands.0, operands.1, i32x4_splat(0));
    i32x4_extract_lane::<0>(dots) == 2 * i32::from(i16::MAX)
}

impl<const PAIRS: bool> Isa for Simd128<PAIRS> {
    const TILES: usize = 1;
    const COLUMNS: usize = 4;
    const B8_ZERO: i32 = 0;
    const WIDE_FROM: usize = if cfg!(target_feature = "relaxed-simd") { 8 } else { 0 };
    const CENTRES: bool = PAIRS;

    type W = v128;
    type Acc = Sums;
    type F = v128;

    #[inline(always)]
    unsafe fn load_words<const V: usize>(tiles: &TilePointers, offset: usize) -> [v128; V] {
        let from = tiles[0].add(offset).cast::<v128>();
        let mut words = [i32x4_splat(0); V];
        for (i, word) in words.iter_mut().enumerate() {
            *word = v128_load(from.add(i));
        }
        words
    }

    #[inline(always)]
    unsafe fn bits(w: v128, right: i32, mask: u8) -> v128 {
        let shifted = match right {
            0 => w,
            1.. => u16x8_shr(w, right.unsigned_abs()),
            _ => u16x8_shl(w, right.unsigned_abs()),
        };
        v128_and(shifted, constant!(masks[usize::from(mask)]))
    }

    #[inline(always)]
    unsafe fn or(a: v128, b: v128) -> v128 {
        v128_or(a, b)
    }

    #[inline(always)]
    unsafe fn bias_b8(w: v128) -> v128 {
        w
    }

    #[inline(always)]
    unsafe fn zero_acc() -> Sums {
        let zero = i32x4_splat(0);
        Sums { rows: zero, low: zero, high: zero }
    }

    #[inline(always)]
    unsafe fn dot16<const BITS: usize>(acc: Sums, w: [v128; 4], x: *const u8) -> Sums {
        #[cfg(target_feature = "relaxed-simd")]
        if BITS < Self::WIDE_FROM {
            return match (PAIRS, BITS) {
                (false, _) => dot_narrow(acc, w, x.cast()),
                // 63 * 127 * 2 fits 16 bits twice, not four times.
                (true, 6) => {
                    let acc = widen(acc, pairs_of::<2>(&w[..2], x.cast()));
                    widen(acc, pairs_of::<2>(&w[2..], x.add(8).cast()))
                }
                // 31 * 127 * 2 fits four times.
                (true, _) => widen(acc, pairs_of::<4>(&w, x.cast())),
            };
        }
        dot_wide(acc, w, x.cast())
    }

    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    unsafe fn centred16<const BITS: usize>(w: [v128; 4], x: *const u8, pairs: *const [i16; 2]) -> Sums {
        if !PAIRS {
            return Self::dot16::<BITS>(Self::zero_acc(), w, x);
        }
        // A code less its centre is at most 32 in magnitude, and eight times that by 127 fit 16 bits: what overflows on the
        // way there comes back when the centre is taken off.
        let sums = pairs_of::<4>(&w, x.cast());
        let centre = i16x8_shr(v128_load32_splat(pairs.cast()), 6 - BITS as u32);
        widen(Self::zero_acc(), i16x8_sub(sums, centre))
    }

    #[inline(always)]
    unsafe fn dot32<const BITS: usize>(w: [v128; 8], x: *const u8) -> Sums {
        #[cfg(target_feature = "relaxed-simd")]
        if PAIRS && BITS <= 4 {
            // 15 * 127 * 2 fits 16 bits eight times.
            return widen(Self::zero_acc(), pairs_of::<8>(&w, x.cast()));
        }
        Self::two_halves::<BITS>(w, x)
    }

    #[inline(always)]
    unsafe fn finish(acc: Sums) -> v128 {
        let even = i32x4_shuffle::<0, 2, 4, 6>(acc.low, acc.high);
        let odd = i32x4_shuffle::<1, 3, 5, 7>(acc.low, acc.high);
        f32x4_convert_i32x4(i32x4_add(i32x4_add(even, odd), acc.rows))
    }

    #[inline(always)]
    unsafe fn scales(tiles: &TilePointers, offset: usize) -> v128 {
        Self::load_f16(tiles[0].add(offset).cast())
    }

    #[inline(always)]
    unsafe fn affine_scales(tiles: &TilePointers, offset: usize) -> (v128, v128) {
        let pairs = v128_load(tiles[0].add(offset).cast());
        (half_lanes(i32x4_shr(i32x4_shl(pairs, 16), 16)), half_lanes(i32x4_shr(pairs, 16)))
    }

    // By hand, since the compiler cannot tell that codes and values lie apart.
    #[inline(always)]
    unsafe fn quantize32<T: Code>(values: &[f32; BLOCK], codes: &mut [T; BLOCK]) -> (f32, [i32; 2]) {
        let mut words = [i32x4_splat(0); BLOCK / 4];
        for (word, values) in words.iter_mut().zip(values.as_chunks::<4>().0) {
            *word = v128_load(values.as_ptr().cast());
        }
        // Magnitudes of floats are ordered as integers.
        let mut largest = f32x4_abs(words[0]);
        for &word in &words[1..] {
            largest = i32x4_max(largest, f32x4_abs(word));
        }
        largest = i32x4_max(largest, i32x4_shuffle::<2, 3, 0, 1>(largest, largest));
        largest = i32x4_max(largest, i32x4_shuffle::<1, 0, 3, 2>(largest, largest));
        let (scale, inverse) = scale_of::<T>(f32x4_extract_lane::<0>(largest));
        let (inverse, rounder) = (f32x4_splat(inverse), constant!(rounder));
        for word in &mut words {
            *word = i32x4_sub(f32x4_add(f32x4_mul(*word, inverse), rounder), rounder);
        }
        let to = codes.as_mut_ptr();
        for (i, four) in words.as_chunks::<4>().0.iter().enumerate() {
            let eights = [i16x8_narrow_i32x4(four[0], four[1]), i16x8_narrow_i32x4(four[2], four[3])];
            let to = to.add(16 * i).cast::<v128>();
            if size_of::<T>() == 1 {
                v128_store(to, i8x16_narrow_i16x8(eights[0], eights[1]));
            } else {
                v128_store(to, eights[0]);
                v128_store(to.add(1), eights[1]);
            }
        }
        let sum = |four: &[v128; 4]| {
            let lanes = i32x4_add(i32x4_add(four[0], four[1]), i32x4_add(four[2], four[3]));
            let lanes = i32x4_add(lanes, i32x4_shuffle::<2, 3, 0, 1>(lanes, lanes));
            i32x4_extract_lane::<0>(lanes).wrapping_add(i32x4_extract_lane::<1>(lanes))
        };
        let halves = words.as_chunks::<4>().0;
        (scale, [sum(&halves[0]), sum(&halves[1])])
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> v128 {
        f32x4_splat(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> v128 {
        v128_load(from.cast())
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> v128 {
        half_lanes(i32x4_extend_low_i16x8(v128_load64_zero(from.cast())))
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: v128) {
        v128_store(to.cast(), value);
    }

    #[inline(always)]
    unsafe fn mul(a: v128, b: v128) -> v128 {
        f32x4_mul(a, b)
    }

    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    unsafe fn fma(a: v128, b: v128, c: v128) -> v128 {
        f32x4_relaxed_madd(a, b, c)
    }

    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    unsafe fn fma(a: v128, b: v128, c: v128) -> v128 {
        f32x4_add(f32x4_mul(a, b), c)
    }

    #[inline(always)]
    unsafe fn sum4(v: [v128; 4]) -> [f32; 4] {
        let ab = f32x4_add(i32x4_shuffle::<0, 1, 4, 5>(v[0], v[1]), i32x4_shuffle::<2, 3, 6, 7>(v[0], v[1]));
        let cd = f32x4_add(i32x4_shuffle::<0, 1, 4, 5>(v[2], v[3]), i32x4_shuffle::<2, 3, 6, 7>(v[2], v[3]));
        let sums = f32x4_add(i32x4_shuffle::<0, 2, 4, 6>(ab, cd), i32x4_shuffle::<1, 3, 5, 7>(ab, cd));
        let mut out = [0f32; 4];
        v128_store(out.as_mut_ptr().cast(), sums);
        out
    }
}
