//! Plain Rust: correct on every processor, and what the others are compared with. Its pieces are not inlined: unrolled
//! they would be most of what the crate's compilation takes, for processors that hardly exist.

#![allow(unsafe_code)]

use super::{Isa, TilePointers};
use crate::kernels::float16::f16_to_f32;

/// The portable implementation.
pub(in crate::kernels) struct Scalar;

impl Isa for Scalar {
    const TILES: usize = 1;
    const COLUMNS: usize = 1;
    const B8_ZERO: i32 = 0;

    type W = [u8; 16];
    type Acc = [i32; 4];
    type F = [f32; 4];

    #[inline(always)]
    unsafe fn load_words<const V: usize>(tiles: &TilePointers, offset: usize) -> [[u8; 16]; V] {
        // SAFETY: the caller promises `16 * V` readable bytes.
        unsafe { tiles[0].add(offset).cast::<[[u8; 16]; V]>().read_unaligned() }
    }

    #[inline(never)]
    unsafe fn bits(w: [u8; 16], right: i32, mask: u8) -> [u8; 16] {
        w.map(|byte| if right >= 0 { (byte >> right) & mask } else { (byte << -right) & mask })
    }

    #[inline(never)]
    unsafe fn or(mut a: [u8; 16], b: [u8; 16]) -> [u8; 16] {
        for (a, b) in a.iter_mut().zip(b) {
            *a |= b;
        }
        a
    }

    #[inline(always)]
    unsafe fn bias_b8(w: [u8; 16]) -> [u8; 16] {
        w
    }

    #[inline(always)]
    unsafe fn zero_acc() -> [i32; 4] {
        [0; 4]
    }

    #[inline(never)]
    unsafe fn dot16<const BITS: usize>(mut acc: [i32; 4], w: [[u8; 16]; 4], x: *const u8) -> [i32; 4] {
        // SAFETY: the caller promises 16 readable activations.
        let x = unsafe { x.cast::<[i8; 16]>().read_unaligned() };
        for (i, word) in w.iter().enumerate() {
            for (row, sum) in acc.iter_mut().enumerate() {
                for j in 0..4 {
                    let code = word[4 * row + j];
                    let code = if BITS == 8 { i32::from(code as i8) } else { i32::from(code) };
                    *sum += code * i32::from(x[4 * i + j]);
                }
            }
        }
        acc
    }

    #[inline(always)]
    unsafe fn finish(acc: [i32; 4]) -> [f32; 4] {
        acc.map(|sum| sum as f32)
    }

    #[inline(always)]
    unsafe fn scales(tiles: &TilePointers, offset: usize) -> [f32; 4] {
        // SAFETY: the caller promises four readable f16.
        unsafe { tiles[0].add(offset).cast::<[u16; 4]>().read_unaligned() }.map(f16_to_f32)
    }

    #[inline(always)]
    unsafe fn affine_scales(tiles: &TilePointers, offset: usize) -> ([f32; 4], [f32; 4]) {
        // SAFETY: the caller promises eight readable f16.
        let pairs = unsafe { tiles[0].add(offset).cast::<[[u16; 2]; 4]>().read_unaligned() };
        (pairs.map(|[scale, _]| f16_to_f32(scale)), pairs.map(|[_, bias]| f16_to_f32(bias)))
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 4] {
        [value; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 4] {
        // SAFETY: the caller promises four readable floats.
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> [f32; 4] {
        // SAFETY: the caller promises four readable halves.
        unsafe { from.cast::<[u16; 4]>().read_unaligned() }.map(f16_to_f32)
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: [f32; 4]) {
        // SAFETY: the caller promises four writable floats.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(value) }
    }

    #[inline(always)]
    unsafe fn mul(mut a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        for (a, b) in a.iter_mut().zip(b) {
            *a *= b;
        }
        a
    }

    #[inline(always)]
    unsafe fn fma(a: [f32; 4], b: [f32; 4], mut c: [f32; 4]) -> [f32; 4] {
        for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
            *c += a * b;
        }
        c
    }

    #[inline(always)]
    unsafe fn sum4(values: [[f32; 4]; 4]) -> [f32; 4] {
        values.map(|v| (v[0] + v[2]) + (v[1] + v[3]))
    }
}
