//! Products of coded weights with one activation row on AVX-512. Decoding is bound by memory, and a register that spans
//! four tiles reads four places at once, which processors fetch ahead badly: here a register spans 32 columns of one
//! tile, so that weights are read in the order in which they lie. The arithmetic is that of [`super::matmul`], and so
//! are the results, to the bit.
//!
//! A register of codes has four lanes of four rows: lane `i` holds columns `8 * i..`, four of each row.

#![allow(unsafe_code)]
#![allow(unsafe_op_in_unsafe_fn, reason = "the bodies are intrinsics under the promises of the caller")]

use std::arch::x86_64::{
    __m128, __m128i, __m512i, _MM_HINT_T0, _mm_add_epi32, _mm_and_si128, _mm_cvtepi32_ps, _mm_cvtph_ps, _mm_fmadd_ps,
    _mm_loadl_epi64, _mm_loadu_si128, _mm_mul_ps, _mm_packus_epi32, _mm_prefetch, _mm_set1_epi32, _mm_set1_ps,
    _mm_setzero_ps, _mm_setzero_si128, _mm_srli_epi32, _mm_storeu_ps, _mm256_add_epi32, _mm256_castsi256_si128,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_castsi256_si512,
    _mm512_castsi512_si256, _mm512_dpbusd_epi32, _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_or_si512,
    _mm512_permutexvar_epi32, _mm512_set_epi32, _mm512_set_epi64, _mm512_set1_epi8, _mm512_setzero_si512,
    _mm512_shuffle_i32x4, _mm512_slli_epi16, _mm512_srli_epi16, _mm512_srlv_epi16, _mm512_xor_si512,
};

use super::activations::{ActivationPointers, BLOCK, NO_REST};
use super::matmul::{CodedShare, group_shift, plane_bits, scale_bytes};
use crate::quant::PackedLayout;

/// How far ahead of their use codes are asked for.
const FETCH_AHEAD: usize = 4096;

/// One tile's planes and what they are multiplied with.
struct Tile {
    low: *const u8,
    high: *const u8,
    scales: *const u8,
    chunks: usize,
    group_shift: u32,
}

/// Multiplies the tiles of a share with the only row of its activations.
///
/// # Safety
/// As [`super::matmul::coded`], for AVX-512 with VNNI; the activations have one row.
#[inline(always)]
pub(super) unsafe fn coded_row(share: &CodedShare<'_>) {
    let PackedLayout::Coded { codes, group, affine } = share.weight.layout() else { return };
    match codes.bits() {
        2 => coded_width::<2>(share, (group, affine)),
        3 => coded_width::<3>(share, (group, affine)),
        4 => coded_width::<4>(share, (group, affine)),
        5 => coded_width::<5>(share, (group, affine)),
        6 => coded_width::<6>(share, (group, affine)),
        _ => coded_width::<8>(share, (group, affine)),
    }
}

/// # Safety
/// As [`coded_row`].
#[inline(always)]
unsafe fn coded_width<const BITS: usize>(share: &CodedShare<'_>, (group, affine): (usize, bool)) {
    match (affine, group) {
        (false, 16) => coded_tiles::<BITS, false, true>(share, group),
        (false, _) => coded_tiles::<BITS, false, false>(share, group),
        (true, 16) => coded_tiles::<BITS, true, true>(share, group),
        (true, _) => coded_tiles::<BITS, true, false>(share, group),
    }
}

/// # Safety
/// As [`coded_row`].
#[inline(always)]
unsafe fn coded_tiles<const BITS: usize, const AFFINE: bool, const SPLIT: bool>(share: &CodedShare<'_>, group: usize) {
    let padded = share.weight.layout().padded_columns(share.weight.columns());
    let (low, high, scales) = share.weight.planes();
    let (low_bits, high_bits) = plane_bits(BITS);
    let x = share.x.pointers(false);
    let rest = (share.x.rests[0], share.x.padded / BLOCK);
    for index in share.tiles.clone() {
        let tile = Tile {
            low: low.as_ptr().cast::<u8>().add(index * padded * low_bits / 2),
            high: high.as_ptr().cast::<u8>().wrapping_add(index * padded * high_bits / 2),
            scales: scales.as_ptr().cast::<u8>().add(index * (padded / group) * scale_bytes(AFFINE)),
            chunks: padded / BLOCK,
            group_shift: group_shift(group),
        };
        let mut sums = [0f32; 4];
        _mm_storeu_ps(sums.as_mut_ptr(), tile_sums::<BITS, AFFINE, SPLIT>(&tile, &x, rest));
        let rows = 4 * index..(4 * index + 4).min(share.weight.rows());
        std::ptr::copy_nonoverlapping(sums.as_ptr(), share.dst.values.add(rows.start), rows.len());
    }
}

/// The sums of a tile's four rows; the activations' block `rest_at` is the rest of block `rest`.
///
/// # Safety
/// As [`coded_row`]; the pointers are those of a tile.
#[inline(always)]
unsafe fn tile_sums<const BITS: usize, const AFFINE: bool, const SPLIT: bool>(
    tile: &Tile,
    x: &ActivationPointers,
    (rest, rest_at): (usize, usize),
) -> __m128 {
    let low_step = 4 * BLOCK * plane_bits(BITS).0 / 8;
    let mut sum = _mm_setzero_ps();
    for chunk in 0..tile.chunks {
        let low = tile.low.add(chunk * low_step);
        for line in 0..low_step.div_ceil(64) {
            _mm_prefetch::<_MM_HINT_T0>(low.wrapping_add(FETCH_AHEAD + 64 * line).cast());
        }
        sum = add_chunk::<BITS, AFFINE, SPLIT>(sum, tile, chunk, x, chunk);
    }
    if rest != NO_REST {
        sum = add_chunk::<BITS, AFFINE, SPLIT>(sum, tile, rest, x, rest_at);
    }
    sum
}

/// Adds the products of chunk `chunk` with block `block` of the activations.
///
/// # Safety
/// As [`tile_sums`]; the chunk and the block exist.
#[inline(always)]
unsafe fn add_chunk<const BITS: usize, const AFFINE: bool, const SPLIT: bool>(
    mut sum: __m128,
    tile: &Tile,
    chunk: usize,
    x: &ActivationPointers,
    block: usize,
) -> __m128 {
    let (low_bits, high_bits) = plane_bits(BITS);
    let (low_step, high_step) = (4 * BLOCK * low_bits / 8, 4 * BLOCK * high_bits / 8);
    let first = _mm512_set_epi32(6, 6, 6, 6, 4, 4, 4, 4, 2, 2, 2, 2, 0, 0, 0, 0);
    let second = _mm512_set_epi32(7, 7, 7, 7, 5, 5, 5, 5, 3, 3, 3, 3, 1, 1, 1, 1);
    let w = codes::<BITS>(tile.low.add(chunk * low_step), tile.high.wrapping_add(chunk * high_step));
    let activations = _mm512_castsi256_si512(_mm256_loadu_si256(x.codes.add(block * BLOCK).cast()));
    let acc = _mm512_dpbusd_epi32(_mm512_setzero_si512(), w[0], _mm512_permutexvar_epi32(first, activations));
    let acc = _mm512_dpbusd_epi32(acc, w[1], _mm512_permutexvar_epi32(second, activations));
    let halves = [_mm512_castsi512_si256(acc), _mm512_extracti64x4_epi64::<1>(acc)];
    let step = _mm_set1_ps(*x.scales.add(block));
    if !SPLIT {
        let sums = _mm256_add_epi32(halves[0], halves[1]);
        let dot = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let total = _mm_set1_ps(*x.totals.add(block));
        let scales = tile.scales.add((chunk >> tile.group_shift) * scale_bytes(AFFINE));
        return scaled::<BITS, AFFINE>(sum, dot, (total, step), scales);
    }
    for (half, sums) in halves.into_iter().enumerate() {
        let dot = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let total = _mm_set1_ps(*x.halves.add(2 * block + half));
        let scales = tile.scales.add((2 * chunk + half) * scale_bytes(AFFINE));
        sum = scaled::<BITS, AFFINE>(sum, dot, (total, step), scales);
    }
    sum
}

/// The codes of 32 columns: register 0 holds the first four columns of each lane's eight, register 1 the others.
///
/// # Safety
/// The planes hold a chunk at `low` and `high`.
#[inline(always)]
unsafe fn codes<const BITS: usize>(low: *const u8, high: *const u8) -> [__m512i; 2] {
    let mask = |w, mask: i8| _mm512_and_si512(w, _mm512_set1_epi8(mask));
    if BITS == 8 {
        let (a, b) = (_mm512_loadu_si512(low.cast()), _mm512_loadu_si512(low.add(64).cast()));
        let sign = _mm512_set1_epi8(-128);
        return [
            _mm512_xor_si512(_mm512_shuffle_i32x4::<0x88>(a, b), sign),
            _mm512_xor_si512(_mm512_shuffle_i32x4::<0xDD>(a, b), sign),
        ];
    }
    if BITS <= 3 {
        let [a, b] = two_bits(low);
        let bits = if BITS == 3 { one_bit(high) } else { [_mm512_setzero_si512(); 2] };
        return [
            _mm512_or_si512(a, _mm512_slli_epi16::<2>(bits[0])),
            _mm512_or_si512(b, _mm512_slli_epi16::<2>(bits[1])),
        ];
    }
    let nibbles = _mm512_loadu_si512(low.cast());
    let w = [mask(nibbles, 0x0F), mask(_mm512_srli_epi16::<4>(nibbles), 0x0F)];
    let above = match BITS {
        5 => one_bit(high),
        6 => two_bits(high),
        _ => return w,
    };
    [_mm512_or_si512(w[0], _mm512_slli_epi16::<4>(above[0])), _mm512_or_si512(w[1], _mm512_slli_epi16::<4>(above[1]))]
}

/// 32 columns of a 2-bit plane.
///
/// # Safety
/// 32 bytes are readable.
#[inline(always)]
unsafe fn two_bits(from: *const u8) -> [__m512i; 2] {
    let words = _mm512_castsi256_si512(_mm256_loadu_si256(from.cast()));
    let words = _mm512_shuffle_i32x4::<0x50>(words, words);
    // 16-bit shifts of each lane: columns 0..4 and 8..12 of a word, then 4..8 and 12..16.
    let (a, b) = (0x0004_0004_0004_0004, 0x0002_0002_0002_0002);
    let first = _mm512_set_epi64(a, a, 0, 0, a, a, 0, 0);
    let second = _mm512_set_epi64(a + b, a + b, b, b, a + b, a + b, b, b);
    let mask = _mm512_set1_epi8(3);
    [_mm512_and_si512(_mm512_srlv_epi16(words, first), mask), _mm512_and_si512(_mm512_srlv_epi16(words, second), mask)]
}

/// 32 columns of a 1-bit plane.
///
/// # Safety
/// 16 bytes are readable.
#[inline(always)]
unsafe fn one_bit(from: *const u8) -> [__m512i; 2] {
    let word = _mm512_broadcast_i32x4(_mm_loadu_si128(from.cast()));
    let one = 0x0001_0001_0001_0001;
    let first = _mm512_set_epi64(6 * one, 6 * one, 4 * one, 4 * one, 2 * one, 2 * one, 0, 0);
    let second = _mm512_set_epi64(7 * one, 7 * one, 5 * one, 5 * one, 3 * one, 3 * one, one, one);
    let mask = _mm512_set1_epi8(1);
    [_mm512_and_si512(_mm512_srlv_epi16(word, first), mask), _mm512_and_si512(_mm512_srlv_epi16(word, second), mask)]
}

/// As `scaled` of [`super::matmul`], for a tile.
///
/// # Safety
/// A group's scales are readable.
#[inline(always)]
unsafe fn scaled<const BITS: usize, const AFFINE: bool>(
    sum: __m128,
    dot: __m128i,
    (total, step): (__m128, __m128),
    scales: *const u8,
) -> __m128 {
    // 8-bit codes were made unsigned by adding 128.
    let offset = if AFFINE && BITS != 8 { 0.0 } else { -((1 << (BITS - 1)) as f32) };
    let dot = _mm_cvtepi32_ps(dot);
    let dot = if offset == 0.0 {
        _mm_mul_ps(dot, step)
    } else {
        _mm_fmadd_ps(dot, step, _mm_mul_ps(total, _mm_set1_ps(offset)))
    };
    if !AFFINE {
        return _mm_fmadd_ps(dot, _mm_cvtph_ps(_mm_loadl_epi64(scales.cast())), sum);
    }
    let pairs = _mm_loadu_si128(scales.cast());
    let low = _mm_and_si128(pairs, _mm_set1_epi32(0xFFFF));
    let scale = _mm_cvtph_ps(_mm_packus_epi32(low, _mm_setzero_si128()));
    let bias = _mm_cvtph_ps(_mm_packus_epi32(_mm_srli_epi32::<16>(pairs), _mm_setzero_si128()));
    _mm_fmadd_ps(dot, scale, _mm_fmadd_ps(bias, total, sum))
}
