//! AArch64 NEON with the dot product extension: `sdot` takes signed bytes, so every code width is a legal operand.

#![allow(unsafe_code)]
#![allow(unsafe_op_in_unsafe_fn, reason = "each body is a few intrinsics under the promises of the trait")]

use std::arch::aarch64::{
    float32x4_t, int8x16_t, int32x4_t, uint8x16_t, vaddq_s32, vandq_u8, vcvt_f32_f16, vcvtq_f32_s32, vdupq_n_f32,
    vdupq_n_s16, vdupq_n_s32, vdupq_n_u8, vfmaq_f32, vld1_u16, vld1q_f32, vld1q_u8, vld2_u16, vmulq_f32, vorrq_u8,
    vpaddq_f32, vreinterpret_f16_u16, vreinterpretq_s8_s32, vreinterpretq_s8_u8, vreinterpretq_u8_u16,
    vreinterpretq_u16_u8, vshlq_u16, vst1q_f32,
};
use std::arch::asm;

use super::{Isa, TilePointers};

/// NEON with `dotprod`.
pub(in crate::kernels) struct Neon;

/// `acc[r] += a[4r..4r + 4] · b[4r..4r + 4]`. The intrinsic is not stable yet.
#[inline(always)]
unsafe fn sdot(mut acc: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    asm!(
        "sdot {acc:v}.4s, {a:v}.16b, {b:v}.16b",
        acc = inout(vreg) acc,
        a = in(vreg) a,
        b = in(vreg) b,
        options(pure, nomem, nostack, preserves_flags),
    );
    acc
}

impl Isa for Neon {
    const TILES: usize = 1;
    const COLUMNS: usize = 4;
    const B8_ZERO: i32 = 0;

    type W = uint8x16_t;
    type Acc = int32x4_t;
    type F = float32x4_t;

    #[inline(always)]
    unsafe fn load_words<const V: usize>(tiles: &TilePointers, offset: usize) -> [uint8x16_t; V] {
        let from = tiles[0].add(offset);
        let mut words = [vdupq_n_u8(0); V];
        for (i, word) in words.iter_mut().enumerate() {
            *word = vld1q_u8(from.add(16 * i));
        }
        words
    }

    #[inline(always)]
    unsafe fn bits(w: uint8x16_t, right: i32, mask: u8) -> uint8x16_t {
        let moved = match right {
            0 => w,
            _ => vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(w), vdupq_n_s16(-right as i16))),
        };
        vandq_u8(moved, vdupq_n_u8(mask))
    }

    #[inline(always)]
    unsafe fn or(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        vorrq_u8(a, b)
    }

    #[inline(always)]
    unsafe fn bias_b8(w: uint8x16_t) -> uint8x16_t {
        w
    }

    #[inline(always)]
    unsafe fn zero_acc() -> int32x4_t {
        vdupq_n_s32(0)
    }

    #[inline(always)]
    unsafe fn dot16<const BITS: usize>(mut acc: int32x4_t, w: [uint8x16_t; 4], x: *const u8) -> int32x4_t {
        let x = x.cast::<i32>();
        for (i, &word) in w.iter().enumerate() {
            let activations = vreinterpretq_s8_s32(vdupq_n_s32(x.add(i).read_unaligned()));
            acc = sdot(acc, vreinterpretq_s8_u8(word), activations);
        }
        acc
    }

    #[inline(always)]
    unsafe fn finish(acc: int32x4_t) -> float32x4_t {
        vcvtq_f32_s32(acc)
    }

    #[inline(always)]
    unsafe fn scales(tiles: &TilePointers, offset: usize) -> float32x4_t {
        Self::load_f16(tiles[0].add(offset).cast())
    }

    #[inline(always)]
    unsafe fn affine_scales(tiles: &TilePointers, offset: usize) -> (float32x4_t, float32x4_t) {
        let pairs = vld2_u16(tiles[0].add(offset).cast());
        (vcvt_f32_f16(vreinterpret_f16_u16(pairs.0)), vcvt_f32_f16(vreinterpret_f16_u16(pairs.1)))
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> float32x4_t {
        vdupq_n_f32(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> float32x4_t {
        vld1q_f32(from)
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> float32x4_t {
        vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)))
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: float32x4_t) {
        vst1q_f32(to, value);
    }

    #[inline(always)]
    unsafe fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        vmulq_f32(a, b)
    }

    #[inline(always)]
    unsafe fn fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        vfmaq_f32(c, a, b)
    }

    #[inline(always)]
    unsafe fn sum4(v: [float32x4_t; 4]) -> [f32; 4] {
        let sums = vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3]));
        let mut out = [0f32; 4];
        vst1q_f32(out.as_mut_ptr(), sums);
        out
    }
}
