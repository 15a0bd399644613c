//! Matrix products, generic over the instruction set: `dst[n, row] = sum_k x[n, k] * weight[row, k]`.
//!
//! Coded weights: a block is the `4 * TILES` rows whose codes one register spans, and up to `COLUMNS` activation rows.
//! For each 32 columns the codes are unpacked once, into eight registers of 4 columns; every activation row then
//! takes eight dots, loses the zero point's share (a multiple of the activations' sum), and meets the scales.
//! Dense weights: lanes run along the columns and are summed at the end.
//! A row's result depends on no other row, so it is the same however rows are divided among threads.

#![allow(unsafe_code)]

use std::ops::Range;

use super::activations::{ActivationPointers, BLOCK, NO_REST, QuantizedRows};
use super::float16::f16_to_f32;
use super::isa::{Isa, TilePointers};
use super::matrix::CpuMatrix;
use crate::quant::PackedLayout;

/// Bytes of a tile that are asked for ahead of their use, where tiles are longer than this.
const FETCH_AHEAD: usize = 2048;

/// Where results go: row `n` of the destination starts at `n * stride`.
#[derive(Clone, Copy)]
pub(super) struct Destination {
    pub(super) values: *mut f32,
    pub(super) stride: usize,
}

/// One share of a product with coded weights.
pub(super) struct CodedShare<'a> {
    pub(super) weight: &'a CpuMatrix,
    pub(super) x: &'a QuantizedRows,
    pub(super) tiles: Range<usize>,
    pub(super) dst: Destination,
}

/// One share of a product with dense weights; `x` is `[n, columns]`.
pub(super) struct DenseShare<'a> {
    pub(super) weight: &'a CpuMatrix,
    pub(super) x: &'a [f32],
    pub(super) tiles: Range<usize>,
    pub(super) dst: Destination,
}

/// What the inner loop of coded weights reads.
struct Coded<'a> {
    low: *const u8,
    high: *const u8,
    scales: *const u8,
    rows: usize,
    /// Columns as stored.
    padded: usize,
    group: usize,
    x: &'a QuantizedRows,
}

/// Multiplies the tiles of a share.
///
/// # Safety
/// The processor has `I`; `weight` is coded, with as many columns as `x`, and `tiles` exist;
/// rows `4 * tiles` of `dst` are writable for each row of `x`, and nobody else touches them.
#[inline(always)]
pub(super) unsafe fn coded<I: Isa>(share: &CodedShare<'_>) {
    let PackedLayout::Coded { codes, group, affine } = share.weight.layout() else { return };
    let (low, high, scales) = share.weight.planes();
    let matrix = Coded {
        low: low.as_ptr().cast(),
        high: high.as_ptr().cast(),
        scales: scales.as_ptr().cast(),
        rows: share.weight.rows(),
        padded: share.weight.layout().padded_columns(share.weight.columns()),
        group,
        x: share.x,
    };
    // SAFETY: the caller's promises; each arm is the code of one width.
    unsafe {
        match codes.bits() {
            2 => coded_width::<I, 2>(&matrix, share, affine),
            3 => coded_width::<I, 3>(&matrix, share, affine),
            4 => coded_width::<I, 4>(&matrix, share, affine),
            5 => coded_width::<I, 5>(&matrix, share, affine),
            6 => coded_width::<I, 6>(&matrix, share, affine),
            _ => coded_width::<I, 8>(&matrix, share, affine),
        }
    }
}

/// # Safety
/// As [`coded`].
#[inline(always)]
unsafe fn coded_width<I: Isa, const BITS: usize>(matrix: &Coded<'_>, share: &CodedShare<'_>, affine: bool) {
    // SAFETY: the caller's promises.
    unsafe {
        match (affine, matrix.group) {
            (false, 16) => coded_tiles::<I, BITS, false, true>(matrix, share),
            (false, _) => coded_tiles::<I, BITS, false, false>(matrix, share),
            (true, 16) => coded_tiles::<I, BITS, true, true>(matrix, share),
            (true, _) => coded_tiles::<I, BITS, true, false>(matrix, share),
        }
    }
}

/// # Safety
/// As [`coded`].
#[inline(always)]
unsafe fn coded_tiles<I: Isa, const BITS: usize, const AFFINE: bool, const SPLIT: bool>(
    matrix: &Coded<'_>,
    share: &CodedShare<'_>,
) {
    let mut first = share.tiles.start;
    while first < share.tiles.end {
        let mut tiles = [first; 4];
        for (i, tile) in tiles.iter_mut().enumerate() {
            *tile = (first + i).min(share.tiles.end - 1);
        }
        let rows = 4 * first..(4 * (first + I::TILES).min(share.tiles.end)).min(matrix.rows);
        let mut n = 0;
        while n < matrix.x.rows {
            let count = (matrix.x.rows - n).min(I::COLUMNS);
            let columns = n..n + count;
            // SAFETY: the caller's promises; `columns` are rows of `x`.
            #[allow(clippy::if_same_then_else, reason = "a condition on a constant alone spares compiling the others")]
            unsafe {
                if I::ONE_COLUMN {
                    block::<I, BITS, AFFINE, SPLIT, 1>(matrix, &tiles, columns, rows.clone(), share.dst);
                } else if count == 1 {
                    block::<I, BITS, AFFINE, SPLIT, 1>(matrix, &tiles, columns, rows.clone(), share.dst);
                } else if count <= 4 {
                    block::<I, BITS, AFFINE, SPLIT, 4>(matrix, &tiles, columns, rows.clone(), share.dst);
                } else if I::EIGHT_COLUMNS {
                    block::<I, BITS, AFFINE, SPLIT, 8>(matrix, &tiles, columns, rows.clone(), share.dst);
                }
            }
            n += count;
        }
        first += I::TILES;
    }
}

/// Multiplies one block and writes `rows` of it. With fewer than `N` columns the last is computed again.
///
/// # Safety
/// As [`coded`]; `tiles` and `columns` exist.
#[inline(always)]
unsafe fn block<I: Isa, const BITS: usize, const AFFINE: bool, const SPLIT: bool, const N: usize>(
    matrix: &Coded<'_>,
    tiles: &[usize; 4],
    columns: Range<usize>,
    rows: Range<usize>,
    dst: Destination,
) {
    let mut indices = [columns.start; N];
    for (i, index) in indices.iter_mut().enumerate() {
        *index = (columns.start + i).min(columns.end - 1);
    }
    // SAFETY: the caller's promises.
    let sums = unsafe { block_sums::<I, BITS, AFFINE, SPLIT, N>(matrix, tiles, &indices) };
    let mut lanes = [0f32; 16];
    for (sum, n) in sums.into_iter().zip(columns) {
        // SAFETY: `lanes` holds the widest register; the destination's rows are ours.
        unsafe {
            I::store(lanes.as_mut_ptr(), sum);
            let to = dst.values.add(n * dst.stride + rows.start);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, rows.len());
        }
    }
}

/// The sums of a block, a register for each of `N` activation rows.
///
/// # Safety
/// As [`block`].
#[inline(always)]
unsafe fn block_sums<I: Isa, const BITS: usize, const AFFINE: bool, const SPLIT: bool, const N: usize>(
    matrix: &Coded<'_>,
    tiles: &[usize; 4],
    columns: &[usize; N],
) -> [I::F; N] {
    let x = matrix.x.pointers(BITS >= I::WIDE_FROM);
    let chunks = matrix.padded / BLOCK;
    let (low_bits, high_bits) = plane_bits(BITS);
    let scale_bytes = scale_bytes(AFFINE);
    // SAFETY: the planes are as long as the layout says (checked when the matrix was made), and the activations are
    // padded to the widest group, so every chunk lies inside both.
    unsafe {
        let low = tile_pointers(matrix.low, tiles, matrix.padded * low_bits / 2);
        let high = tile_pointers(matrix.high, tiles, matrix.padded * high_bits / 2);
        let scales = tile_pointers(matrix.scales, tiles, matrix.padded / matrix.group * scale_bytes);
        let group_shift = group_shift(matrix.group);
        let mut starts = *columns;
        for start in &mut starts {
            *start *= matrix.x.stride();
        }
        let mut sums = [I::splat(0.0); N];
        let rest = if BITS < I::WIDE_FROM { shared_rest(matrix.x, columns) } else { Some(NO_REST) };
        let ends_with_rest = rest.is_some_and(|rest| rest != NO_REST);
        for step in 0..chunks + usize::from(ends_with_rest) {
            let (chunk, at) = if step < chunks { (step, step * BLOCK) } else { (rest.unwrap_or(0), matrix.x.padded) };
            if N == 1 {
                fetch_ahead::<I>(&low, (matrix.padded, low_bits), chunk);
            }
            let w = unpack::<I, BITS>(&low, &high, chunk);
            let scales = chunk_scales::<I, AFFINE, SPLIT>(&scales, chunk, group_shift);
            macro_rules! add_to {
                ($($i:literal)*) => {
                    $(
                        if $i < N {
                            let at = starts[$i] + at;
                            sums[$i] = add_chunk::<I, BITS, AFFINE, SPLIT>(sums[$i], &w, &scales, &x, at);
                        }
                    )*
                };
            }
            // Neither a loop, which keeps the sums in memory, nor a closure, which lacks the instruction set.
            add_to!(0 1 2 3 4 5 6 7);
        }
        if rest.is_some() {
            return sums;
        }
        for (sum, &n) in sums.iter_mut().zip(columns) {
            let chunk = matrix.x.rests[n];
            if chunk != NO_REST {
                let w = unpack::<I, BITS>(&low, &high, chunk);
                let scales = chunk_scales::<I, AFFINE, SPLIT>(&scales, chunk, group_shift);
                let at = n * matrix.x.stride() + matrix.x.padded;
                *sum = add_chunk::<I, BITS, AFFINE, SPLIT>(*sum, &w, &scales, &x, at);
            }
        }
        sums
    }
}

/// The block whose rest all activation rows that have one have, mostly so, or [`NO_REST`] where none has one: a row
/// without a rest has zeros in its place. `None` where rows differ.
#[inline(always)]
fn shared_rest(x: &QuantizedRows, columns: &[usize]) -> Option<usize> {
    let mut shared = NO_REST;
    for &n in columns {
        let rest = x.rests[n];
        if shared == NO_REST {
            shared = rest;
        } else if rest != NO_REST && rest != shared {
            return None;
        }
    }
    Some(shared)
}

/// The scales of 32 columns: of their group, or of their two.
///
/// # Safety
/// The scale planes hold the chunk.
#[inline(always)]
unsafe fn chunk_scales<I: Isa, const AFFINE: bool, const SPLIT: bool>(
    scales: &TilePointers,
    chunk: usize,
    group_shift: u32,
) -> [(I::F, I::F); 2] {
    let bytes = scale_bytes(AFFINE);
    // SAFETY: the caller's promise.
    unsafe {
        if SPLIT {
            let at = |half| (2 * chunk + half) * bytes;
            return [group_scales::<I, AFFINE>(scales, at(0)), group_scales::<I, AFFINE>(scales, at(1))];
        }
        [group_scales::<I, AFFINE>(scales, (chunk >> group_shift) * bytes); 2]
    }
}

/// Adds the products of 32 columns with the activations at code `at`.
///
/// # Safety
/// The processor has `I`, and the activations have that block.
#[inline(always)]
unsafe fn add_chunk<I: Isa, const BITS: usize, const AFFINE: bool, const SPLIT: bool>(
    mut sum: I::F,
    w: &[I::W; 8],
    scales: &[(I::F, I::F); 2],
    x: &ActivationPointers,
    at: usize,
) -> I::F {
    // SAFETY: the caller's promise.
    unsafe {
        let step = *x.scales.add(at / BLOCK);
        if !SPLIT {
            let acc = I::dot32::<BITS>(*w, x.codes.add(at * x.code_bytes));
            return scaled::<I, BITS, AFFINE>(sum, acc, (*x.totals.add(at / BLOCK), step), scales[0]);
        }
        if I::CENTRES && !AFFINE && BITS < I::WIDE_FROM {
            let [first, second] = [[w[0], w[1], w[2], w[3]], [w[4], w[5], w[6], w[7]]];
            let (codes, pairs) = (x.codes.add(at), x.pairs.add(at / 16));
            let first = I::finish(I::centred16::<BITS>(first, codes, pairs));
            let second = I::finish(I::centred16::<BITS>(second, codes.add(16), pairs.add(1)));
            let both = I::fma(second, scales[1].0, I::mul(first, scales[0].0));
            return I::fma(both, I::splat(step), sum);
        }
        for (half, &scales) in scales.iter().enumerate() {
            let words = [w[4 * half], w[4 * half + 1], w[4 * half + 2], w[4 * half + 3]];
            let at = at + 16 * half;
            let acc = I::dot16::<BITS>(I::zero_acc(), words, x.codes.add(at * x.code_bytes));
            sum = scaled::<I, BITS, AFFINE>(sum, acc, (*x.halves.add(at / 16), step), scales);
        }
        sum
    }
}

/// Asks for the codes that come after those of `chunk`: of the next block where tiles are short, since their ends
/// break the processor's own guesses, and further along the tiles where they are long.
///
/// # Safety
/// The processor has `I`.
#[inline(always)]
unsafe fn fetch_ahead<I: Isa>(low: &TilePointers, (padded, bits): (usize, usize), chunk: usize) {
    let tile_bytes = padded * bits / 2;
    let ahead = if tile_bytes > FETCH_AHEAD { FETCH_AHEAD } else { I::TILES * tile_bytes };
    let chunk_bytes = 16 * bits;
    for tile in low.iter().take(I::TILES) {
        // SAFETY: the caller's promise.
        unsafe { I::prefetch(tile.wrapping_add(ahead + chunk * chunk_bytes)) };
        if chunk_bytes > 64 {
            // SAFETY: the caller's promise.
            unsafe { I::prefetch(tile.wrapping_add(ahead + chunk * chunk_bytes + 64)) };
        }
    }
}

/// Bits per code of the low and high plane.
pub(super) const fn plane_bits(bits: usize) -> (usize, usize) {
    match bits {
        2 => (2, 0),
        3 => (2, 1),
        4 => (4, 0),
        5 => (4, 1),
        6 => (4, 2),
        _ => (8, 0),
    }
}

/// A chunk of 32 columns belongs to the group whose index is the chunk's, shifted right by this: a division takes as long as
/// many products. A group that is no power of two is a whole row, so that its index is 0.
#[inline(always)]
pub(super) fn group_shift(group: usize) -> u32 {
    if group.is_power_of_two() { (group / BLOCK).max(1).trailing_zeros() } else { usize::BITS - 1 }
}

/// Bytes of a tile's scales of one group.
pub(super) const fn scale_bytes(affine: bool) -> usize {
    if affine { 16 } else { 8 }
}

/// # Safety
/// The plane holds the tiles, `tile_bytes` each.
#[inline(always)]
unsafe fn tile_pointers(plane: *const u8, tiles: &[usize; 4], tile_bytes: usize) -> TilePointers {
    let mut pointers = [plane; 4];
    for (pointer, &tile) in pointers.iter_mut().zip(tiles) {
        // SAFETY: the caller's promise; an absent plane has 0 bytes a tile.
        *pointer = unsafe { plane.add(tile * tile_bytes) };
    }
    pointers
}

/// The codes of 32 columns: register `i` holds columns `4 * i..4 * i + 4`, unsigned but for 8 bits without `B8_ZERO`.
///
/// # Safety
/// The planes hold chunk `chunk` of every tile.
#[inline(always)]
unsafe fn unpack<I: Isa, const BITS: usize>(low: &TilePointers, high: &TilePointers, chunk: usize) -> [I::W; 8] {
    // SAFETY: the caller's promise.
    unsafe {
        if BITS == 8 {
            let mut w = I::load_words::<8>(low, 128 * chunk);
            for w in &mut w {
                *w = I::bias_b8(*w);
            }
            return w;
        }
        if BITS <= 3 {
            let pairs = I::load_words::<2>(low, 32 * chunk);
            let mut w = [pairs[0]; 8];
            for (i, w) in w.iter_mut().enumerate() {
                *w = I::bits(pairs[i / 4], 2 * (i % 4) as i32, 0b11);
            }
            if BITS == 3 {
                let [bit] = I::load_words::<1>(high, 16 * chunk);
                for (i, w) in w.iter_mut().enumerate() {
                    *w = I::or(*w, I::bits(bit, i as i32 - 2, 0b100));
                }
            }
            return w;
        }
        let nibbles = I::load_words::<4>(low, 64 * chunk);
        let mut w = [nibbles[0]; 8];
        for (i, w) in w.iter_mut().enumerate() {
            *w = I::bits(nibbles[i / 2], 4 * (i % 2) as i32, 0x0F);
        }
        if BITS == 5 {
            let [bit] = I::load_words::<1>(high, 16 * chunk);
            for (i, w) in w.iter_mut().enumerate() {
                *w = I::or(*w, I::bits(bit, i as i32 - 4, 0x10));
            }
        }
        if BITS == 6 {
            let pairs = I::load_words::<2>(high, 32 * chunk);
            for (i, w) in w.iter_mut().enumerate() {
                *w = I::or(*w, I::bits(pairs[i / 4], 2 * (i % 4) as i32 - 4, 0x30));
            }
        }
        w
    }
}

/// # Safety
/// The scale planes hold a group at `offset`.
#[inline(always)]
unsafe fn group_scales<I: Isa, const AFFINE: bool>(scales: &TilePointers, offset: usize) -> (I::F, I::F) {
    // SAFETY: the caller's promise.
    unsafe {
        if AFFINE {
            return I::affine_scales(scales, offset);
        }
        (I::scales(scales, offset), I::splat(0.0))
    }
}

/// Adds a group's integer sum to the float sums; `(total, step)` are the sum of its activations and their scale.
///
/// # Safety
/// The processor has `I`.
#[inline(always)]
unsafe fn scaled<I: Isa, const BITS: usize, const AFFINE: bool>(
    sum: I::F,
    acc: I::Acc,
    (total, step): (f32, f32),
    (scale, bias): (I::F, I::F),
) -> I::F {
    // What a legal operand exceeds the signed code by, and what the layout's zero code is.
    let offset = match BITS {
        8 => I::B8_ZERO,
        _ if AFFINE => 0,
        _ => 1 << (BITS - 1),
    };
    // SAFETY: the caller's promise.
    unsafe {
        let dot = I::finish(acc);
        let dot = if offset == 0 {
            I::mul(dot, I::splat(step))
        } else {
            I::fma(dot, I::splat(step), I::splat(total * -offset as f32))
        };
        let sum = if AFFINE { I::fma(bias, I::splat(total), sum) } else { sum };
        I::fma(dot, scale, sum)
    }
}

/// Multiplies the tiles of a share with dense weights: for many activation rows in blocks of 2 by 4, so that a weight
/// is read and widened once for four of them; what is left, 4 by 1.
///
/// # Safety
/// The processor has `I`; `weight` is dense; `x` holds whole rows; the rest as for [`coded`].
#[inline(always)]
pub(super) unsafe fn dense<I: Isa>(share: &DenseShare<'_>) {
    // SAFETY: the caller's promises.
    unsafe {
        match share.weight.layout() {
            PackedLayout::F16 => dense_share::<I, true>(share),
            _ => dense_share::<I, false>(share),
        }
    }
}

/// # Safety
/// As [`dense`]; the weight is in f16 if `HALF`.
#[inline(always)]
unsafe fn dense_share<I: Isa, const HALF: bool>(share: &DenseShare<'_>) {
    let n = share.x.len() / share.weight.columns().max(1);
    let end = (4 * share.tiles.end).min(share.weight.rows());
    let together = n / 4 * 4;
    let mut row = 4 * share.tiles.start;
    while row < end {
        let rows = row..(row + 4).min(end);
        // SAFETY: the caller's promises; the rows of weight and activations exist.
        unsafe {
            for first in (0..together).step_by(4) {
                dense_block::<I, HALF, 2, 4>(share, row..(row + 2).min(end), first);
                if row + 2 < end {
                    dense_block::<I, HALF, 2, 4>(share, row + 2..rows.end, first);
                }
            }
            for first in together..n {
                dense_block::<I, HALF, 4, 1>(share, rows.clone(), first);
            }
        }
        row += 4;
    }
}

/// Products of up to `R` weight rows with the `N` activation rows from `first`; missing weight rows repeat the last.
/// `R * N` is a multiple of 4. Each product is summed in the same order whatever block it is in.
///
/// # Safety
/// As [`dense_share`]; `rows` is not empty, and the rows exist.
#[inline(always)]
unsafe fn dense_block<I: Isa, const HALF: bool, const R: usize, const N: usize>(
    share: &DenseShare<'_>,
    rows: Range<usize>,
    first: usize,
) {
    let columns = share.weight.columns();
    let plane = share.weight.planes().0.as_ptr();
    let stride = share.weight.layout().padded_columns(columns);
    let starts: [usize; R] = std::array::from_fn(|r| (rows.start + r).min(rows.end - 1) * stride);
    // SAFETY: the plane holds `stride` values a row, and loops end at `columns`.
    unsafe {
        let x = share.x.as_ptr().add(first * columns);
        let mut sums = [[I::splat(0.0); N]; R];
        let mut k = 0;
        while k + I::LANES <= columns {
            let x: [I::F; N] = std::array::from_fn(|n| I::load(x.add(n * columns + k)));
            for (sums, start) in sums.iter_mut().zip(starts) {
                let at = start + k;
                let w =
                    if HALF { I::load_f16(plane.cast::<u16>().add(at)) } else { I::load(plane.cast::<f32>().add(at)) };
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = I::fma(w, x, *sum);
                }
            }
            k += I::LANES;
        }
        let flat = sums.as_flattened();
        for i in (0..R * N).step_by(4) {
            let totals = I::sum4([flat[i], flat[i + 1], flat[i + 2], flat[i + 3]]);
            for (i, mut total) in (i..).zip(totals) {
                let (r, n) = (i / N, i % N);
                for k in k..columns {
                    let at = starts[r] + k;
                    let w = if HALF { f16_to_f32(*plane.cast::<u16>().add(at)) } else { *plane.cast::<f32>().add(at) };
                    total += w * *x.add(n * columns + k);
                }
                if rows.start + r < rows.end {
                    // SAFETY: the destination's rows are ours.
                    *share.dst.values.add((first + n) * share.dst.stride + rows.start + r) = total;
                }
            }
        }
    }
}
