//! AVX-512 with VNNI: a register spans four tiles, so a lane is a row and `vpdpbusd` takes its activations as a
//! broadcast memory operand. Tiles lie apart in memory; 4 x 4 transposes of 128-bit lanes bring them together.

#![allow(unsafe_code)]
#![allow(unsafe_op_in_unsafe_fn, reason = "each body is a few intrinsics under the promises of the trait")]

use std::arch::x86_64::{
    __m128i, __m512, __m512i, _MM_HINT_T0, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_loadu_si128, _mm_prefetch,
    _mm_unpacklo_epi64, _mm256_loadu_si256, _mm256_set_m128i, _mm512_add_ps, _mm512_and_si512, _mm512_castsi256_si512,
    _mm512_cvtepi32_epi16, _mm512_cvtepi32_ps, _mm512_cvtph_ps, _mm512_dpbusd_epi32, _mm512_fmadd_ps,
    _mm512_inserti64x4, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_or_si512, _mm512_permute_ps,
    _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_shuffle_f32x4,
    _mm512_shuffle_i32x4, _mm512_sll_epi16, _mm512_srl_epi16, _mm512_srli_epi32, _mm512_storeu_ps, _mm512_xor_si512,
};

use super::{Isa, TilePointers};

/// AVX-512F/BW/VL/VNNI.
pub(in crate::kernels) struct Avx512;

// Shuffles of 128-bit lanes: `[a0, a1, b0, b1]`, `[a2, a3, b2, b3]`, `[a0, a2, b0, b2]`, `[a1, a3, b1, b3]`.
const LOW: i32 = 0x44;
const HIGH: i32 = 0xEE;
const EVEN: i32 = 0x88;
const ODD: i32 = 0xDD;

/// Four 128-bit words side by side.
#[inline(always)]
unsafe fn join(words: [__m128i; 4]) -> __m512i {
    let low = _mm256_set_m128i(words[1], words[0]);
    let high = _mm256_set_m128i(words[3], words[2]);
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

#[inline(always)]
unsafe fn load_one(tiles: &TilePointers, offset: usize) -> __m512i {
    join([
        _mm_loadu_si128(tiles[0].add(offset).cast()),
        _mm_loadu_si128(tiles[1].add(offset).cast()),
        _mm_loadu_si128(tiles[2].add(offset).cast()),
        _mm_loadu_si128(tiles[3].add(offset).cast()),
    ])
}

#[inline(always)]
unsafe fn load_two(tiles: &TilePointers, offset: usize) -> [__m512i; 2] {
    let a = _mm256_loadu_si256(tiles[0].add(offset).cast());
    let b = _mm256_loadu_si256(tiles[1].add(offset).cast());
    let c = _mm256_loadu_si256(tiles[2].add(offset).cast());
    let d = _mm256_loadu_si256(tiles[3].add(offset).cast());
    let ab = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b);
    let cd = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(c), d);
    [_mm512_shuffle_i32x4::<EVEN>(ab, cd), _mm512_shuffle_i32x4::<ODD>(ab, cd)]
}

#[inline(always)]
unsafe fn load_four(tiles: &TilePointers, offset: usize) -> [__m512i; 4] {
    let a = _mm512_loadu_si512(tiles[0].add(offset).cast());
    let b = _mm512_loadu_si512(tiles[1].add(offset).cast());
    let c = _mm512_loadu_si512(tiles[2].add(offset).cast());
    let d = _mm512_loadu_si512(tiles[3].add(offset).cast());
    let ab = _mm512_shuffle_i32x4::<LOW>(a, b);
    let cd = _mm512_shuffle_i32x4::<LOW>(c, d);
    let ab_high = _mm512_shuffle_i32x4::<HIGH>(a, b);
    let cd_high = _mm512_shuffle_i32x4::<HIGH>(c, d);
    [
        _mm512_shuffle_i32x4::<EVEN>(ab, cd),
        _mm512_shuffle_i32x4::<ODD>(ab, cd),
        _mm512_shuffle_i32x4::<EVEN>(ab_high, cd_high),
        _mm512_shuffle_i32x4::<ODD>(ab_high, cd_high),
    ]
}

impl Isa for Avx512 {
    const TILES: usize = 4;
    const COLUMNS: usize = 8;
    const B8_ZERO: i32 = 128;

    type W = __m512i;
    type Acc = __m512i;
    type F = __m512;

    #[inline(always)]
    unsafe fn load_words<const V: usize>(tiles: &TilePointers, offset: usize) -> [__m512i; V] {
        let mut words = [_mm512_setzero_si512(); V];
        match V {
            1 => words[0] = load_one(tiles, offset),
            2 => words.copy_from_slice(&load_two(tiles, offset)),
            4 => words.copy_from_slice(&load_four(tiles, offset)),
            _ => {
                words[..4].copy_from_slice(&load_four(tiles, offset));
                words[4..].copy_from_slice(&load_four(tiles, offset + 64));
            }
        }
        words
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    }

    #[inline(always)]
    unsafe fn bits(w: __m512i, right: i32, mask: u8) -> __m512i {
        let shifted = match right {
            0 => w,
            1.. => _mm512_srl_epi16(w, _mm_cvtsi32_si128(right)),
            _ => _mm512_sll_epi16(w, _mm_cvtsi32_si128(-right)),
        };
        _mm512_and_si512(shifted, _mm512_set1_epi8(mask as i8))
    }

    #[inline(always)]
    unsafe fn or(a: __m512i, b: __m512i) -> __m512i {
        _mm512_or_si512(a, b)
    }

    #[inline(always)]
    unsafe fn bias_b8(w: __m512i) -> __m512i {
        _mm512_xor_si512(w, _mm512_set1_epi8(-128))
    }

    #[inline(always)]
    unsafe fn zero_acc() -> __m512i {
        _mm512_setzero_si512()
    }

    #[inline(always)]
    unsafe fn dot16<const BITS: usize>(mut acc: __m512i, w: [__m512i; 4], x: *const u8) -> __m512i {
        let x = x.cast::<i32>();
        for (i, &word) in w.iter().enumerate() {
            acc = _mm512_dpbusd_epi32(acc, word, _mm512_set1_epi32(x.add(i).read_unaligned()));
        }
        acc
    }

    #[inline(always)]
    unsafe fn finish(acc: __m512i) -> __m512 {
        _mm512_cvtepi32_ps(acc)
    }

    #[inline(always)]
    unsafe fn scales(tiles: &TilePointers, offset: usize) -> __m512 {
        let a = _mm_loadl_epi64(tiles[0].add(offset).cast());
        let b = _mm_loadl_epi64(tiles[1].add(offset).cast());
        let c = _mm_loadl_epi64(tiles[2].add(offset).cast());
        let d = _mm_loadl_epi64(tiles[3].add(offset).cast());
        _mm512_cvtph_ps(_mm256_set_m128i(_mm_unpacklo_epi64(c, d), _mm_unpacklo_epi64(a, b)))
    }

    #[inline(always)]
    unsafe fn affine_scales(tiles: &TilePointers, offset: usize) -> (__m512, __m512) {
        let pairs = load_one(tiles, offset);
        let scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs));
        let bias = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(pairs)));
        (scale, bias)
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        _mm512_set1_ps(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        _mm512_loadu_ps(from)
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> __m512 {
        _mm512_cvtph_ps(_mm256_loadu_si256(from.cast()))
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m512) {
        _mm512_storeu_ps(to, value);
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        _mm512_mul_ps(a, b)
    }

    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        _mm512_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    unsafe fn sum4(v: [__m512; 4]) -> [f32; 4] {
        // Adds halves of 256 and then 128 bits across registers, until each 128-bit lane holds one of them.
        let ab = _mm512_add_ps(_mm512_shuffle_f32x4::<LOW>(v[0], v[1]), _mm512_shuffle_f32x4::<HIGH>(v[0], v[1]));
        let cd = _mm512_add_ps(_mm512_shuffle_f32x4::<LOW>(v[2], v[3]), _mm512_shuffle_f32x4::<HIGH>(v[2], v[3]));
        let lanes = _mm512_add_ps(_mm512_shuffle_f32x4::<EVEN>(ab, cd), _mm512_shuffle_f32x4::<ODD>(ab, cd));
        let pairs = _mm512_add_ps(lanes, _mm512_permute_ps::<0b01_00_11_10>(lanes));
        let sums = _mm512_add_ps(pairs, _mm512_permute_ps::<0b10_11_00_01>(pairs));
        let mut stored = [0f32; 16];
        _mm512_storeu_ps(stored.as_mut_ptr(), sums);
        [stored[0], stored[4], stored[8], stored[12]]
    }
}
