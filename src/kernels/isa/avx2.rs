//! AVX2 with FMA and F16C: a register spans two tiles. Without VNNI the products of unsigned codes and signed
//! activations are summed in 16 bits, as long as that cannot overflow, and then in 32.

#![allow(unsafe_code)]
#![allow(unsafe_op_in_unsafe_fn, reason = "each body is a few intrinsics under the promises of the trait")]

use std::arch::x86_64::{
    __m256, __m256i, _MM_HINT_T0, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_loadu_si128, _mm_prefetch,
    _mm_unpacklo_epi64, _mm256_abs_epi8, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256, _mm256_castsi256_si128,
    _mm256_cvtepi32_ps, _mm256_cvtph_ps, _mm256_dpbusd_avx_epi32, _mm256_extracti128_si256, _mm256_fmadd_ps,
    _mm256_hadd_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_mul_ps,
    _mm256_or_si256, _mm256_packus_epi32, _mm256_permute2x128_si256, _mm256_permute4x64_epi64, _mm256_set_m128i,
    _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_si256, _mm256_sign_epi8,
    _mm256_sll_epi16, _mm256_srl_epi16, _mm256_srli_epi32, _mm256_storeu_ps, _mm256_xor_si256,
};

use super::{Isa, TilePointers};

/// AVX2, FMA and F16C; with `VNNI` also AVX-VNNI's 256-bit `vpdpbusd`.
pub(in crate::kernels) struct Avx2<const VNNI: bool>;

#[inline(always)]
unsafe fn broadcast(codes: *const u8, dword: usize) -> __m256i {
    _mm256_set1_epi32(codes.cast::<i32>().add(dword).read_unaligned())
}

/// Sums neighbouring 16-bit sums into 32 bits.
#[inline(always)]
unsafe fn widen(acc: __m256i, sums: __m256i) -> __m256i {
    _mm256_add_epi32(acc, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)))
}

/// Products of two words of unsigned codes and their activations, summed in 16 bits.
#[inline(always)]
unsafe fn two_words(w: [__m256i; 2], codes: *const u8, dword: usize) -> __m256i {
    _mm256_add_epi16(
        _mm256_maddubs_epi16(w[0], broadcast(codes, dword)),
        _mm256_maddubs_epi16(w[1], broadcast(codes, dword + 1)),
    )
}

/// Signed codes: |w| is legal as the unsigned operand, and the activation takes the sign of w.
/// 128 * 127 * 2 fits 16 bits.
#[inline(always)]
unsafe fn signed_word(acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
    widen(acc, _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)))
}

#[inline(always)]
unsafe fn load_two(tiles: &TilePointers, offset: usize) -> [__m256i; 2] {
    let a = _mm256_loadu_si256(tiles[0].add(offset).cast());
    let b = _mm256_loadu_si256(tiles[1].add(offset).cast());
    [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
}

impl<const VNNI: bool> Isa for Avx2<VNNI> {
    const TILES: usize = 2;
    const COLUMNS: usize = 4;
    const B8_ZERO: i32 = if VNNI { 128 } else { 0 };

    type W = __m256i;
    type Acc = __m256i;
    type F = __m256;

    #[inline(always)]
    unsafe fn load_words<const V: usize>(tiles: &TilePointers, offset: usize) -> [__m256i; V] {
        let mut words = [_mm256_setzero_si256(); V];
        if V == 1 {
            let a = _mm_loadu_si128(tiles[0].add(offset).cast());
            let b = _mm_loadu_si128(tiles[1].add(offset).cast());
            words[0] = _mm256_set_m128i(b, a);
            return words;
        }
        let mut i = 0;
        while i < V {
            words[i..i + 2].copy_from_slice(&load_two(tiles, offset + 16 * i));
            i += 2;
        }
        words
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    }

    #[inline(always)]
    unsafe fn bits(w: __m256i, right: i32, mask: u8) -> __m256i {
        let shifted = match right {
            0 => w,
            1.. => _mm256_srl_epi16(w, _mm_cvtsi32_si128(right)),
            _ => _mm256_sll_epi16(w, _mm_cvtsi32_si128(-right)),
        };
        _mm256_and_si256(shifted, _mm256_set1_epi8(mask as i8))
    }

    #[inline(always)]
    unsafe fn or(a: __m256i, b: __m256i) -> __m256i {
        _mm256_or_si256(a, b)
    }

    #[inline(always)]
    unsafe fn bias_b8(w: __m256i) -> __m256i {
        if VNNI { _mm256_xor_si256(w, _mm256_set1_epi8(-128)) } else { w }
    }

    #[inline(always)]
    unsafe fn zero_acc() -> __m256i {
        _mm256_setzero_si256()
    }

    #[inline(always)]
    unsafe fn dot16<const BITS: usize>(mut acc: __m256i, w: [__m256i; 4], x: *const u8) -> __m256i {
        if VNNI {
            for (i, &word) in w.iter().enumerate() {
                acc = _mm256_dpbusd_avx_epi32(acc, word, broadcast(x, i));
            }
            return acc;
        }
        if BITS == 8 {
            for (i, &word) in w.iter().enumerate() {
                acc = signed_word(acc, word, broadcast(x, i));
            }
            return acc;
        }
        let low = two_words([w[0], w[1]], x, 0);
        let high = two_words([w[2], w[3]], x, 2);
        if BITS == 6 {
            // 63 * 127 * 2 fits 16 bits twice, not four times.
            widen(widen(acc, low), high)
        } else {
            // 31 * 127 * 2 fits four times.
            widen(acc, _mm256_add_epi16(low, high))
        }
    }

    #[inline(always)]
    unsafe fn dot32<const BITS: usize>(w: [__m256i; 8], x: *const u8) -> __m256i {
        if VNNI || BITS > 4 {
            return Self::two_halves::<BITS>(w, x);
        }
        // 15 * 127 * 2 fits 16 bits eight times.
        let low = _mm256_add_epi16(two_words([w[0], w[1]], x, 0), two_words([w[2], w[3]], x, 2));
        let high = _mm256_add_epi16(two_words([w[4], w[5]], x, 4), two_words([w[6], w[7]], x, 6));
        _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1))
    }

    #[inline(always)]
    unsafe fn finish(acc: __m256i) -> __m256 {
        _mm256_cvtepi32_ps(acc)
    }

    #[inline(always)]
    unsafe fn scales(tiles: &TilePointers, offset: usize) -> __m256 {
        let a = _mm_loadl_epi64(tiles[0].add(offset).cast());
        let b = _mm_loadl_epi64(tiles[1].add(offset).cast());
        _mm256_cvtph_ps(_mm_unpacklo_epi64(a, b))
    }

    #[inline(always)]
    unsafe fn affine_scales(tiles: &TilePointers, offset: usize) -> (__m256, __m256) {
        let [pairs] = Self::load_words::<1>(tiles, offset);
        let scales = _mm256_and_si256(pairs, _mm256_set1_epi32(0xFFFF));
        // Packs to [scales 0..4, biases 0..4] in each half, then sorts the quarters.
        let packed = _mm256_packus_epi32(scales, _mm256_srli_epi32::<16>(pairs));
        let sorted = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
        (_mm256_cvtph_ps(_mm256_castsi256_si128(sorted)), _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(sorted)))
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        _mm256_set1_ps(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        _mm256_loadu_ps(from)
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> __m256 {
        _mm256_cvtph_ps(_mm_loadu_si128(from.cast()))
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m256) {
        _mm256_storeu_ps(to, value);
    }

    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        _mm256_mul_ps(a, b)
    }

    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        _mm256_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    unsafe fn sum4(v: [__m256; 4]) -> [f32; 4] {
        let sums = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
        let mut halves = [0f32; 8];
        _mm256_storeu_ps(halves.as_mut_ptr(), sums);
        [halves[0] + halves[4], halves[1] + halves[5], halves[2] + halves[6], halves[3] + halves[7]]
    }
}
