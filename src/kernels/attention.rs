//! Attention over a KV cache with an online softmax, generic over the instruction set.
//!
//! Queries that share a key head are taken four at a time: rows `(position, head of the group)` in order, so that in
//! decoding the heads of a group share each key, and in prefill neighbouring positions do. Keys come in blocks of 64
//! and spans of 128 at fixed places, so that a row's result does not depend on the rows it is computed with. Each span is
//! summed by itself, so that in decoding threads share them, and the sums are merged in order (flash-decoding, Dao et al., 2023).

#![allow(unsafe_code)]

use std::ops::Range;

use super::attention_part::{ROWS, add_part, finish, part_len};
use super::elementwise::exp;
use super::float16::f16_to_f32;
use super::isa::Isa;
use crate::error::{Error, Result};
use crate::quant::KV_BLOCK;

/// Keys of a block.
const KEYS: usize = 64;
/// Keys of a span.
const SPAN: usize = 2 * KEYS;
/// Interleaved parts that the scores of a row are summed in.
const SUMS: usize = 16;

/// Cached keys and values, each `[n_kv_heads, capacity, head_dim]`.
#[derive(Debug, Clone, Copy)]
pub enum CacheSlices<'a> {
    /// Half precision bits.
    F16 {
        /// Keys.
        k: &'a [u16],
        /// Values.
        v: &'a [u16],
    },
    /// Single precision.
    F32 {
        /// Keys.
        k: &'a [f32],
        /// Values.
        v: &'a [f32],
    },
    /// Bytes with scales.
    Q8 {
        /// Keys.
        k: ByteRows<'a>,
        /// Values.
        v: ByteRows<'a>,
    },
}

/// Heads as bytes, as [`KvType::Q8`](crate::quant::KvType::Q8) describes.
#[derive(Debug, Clone, Copy)]
pub struct ByteRows<'a> {
    /// The bytes, `[n_kv_heads, capacity, head_dim]`.
    pub codes: &'a [i8],
    /// The largest magnitude of each block, `[n_kv_heads, capacity, head_dim.div_ceil(KV_BLOCK)]`.
    pub tops: &'a [f32],
}

impl CacheSlices<'_> {
    fn lens(&self) -> [usize; 2] {
        match self {
            Self::F16 { k, v } => [k.len(), v.len()],
            Self::F32 { k, v } => [k.len(), v.len()],
            Self::Q8 { k, v } => [k.codes.len(), v.codes.len()],
        }
    }

    /// Scales of keys and of values where there are any.
    fn scales(&self) -> Option<[usize; 2]> {
        match self {
            Self::Q8 { k, v } => Some([k.tops.len(), v.tops.len()]),
            _ => None,
        }
    }
}

/// Sizes and rules of an attention.
#[derive(Debug, Clone, Copy)]
pub struct AttentionShape {
    /// Query heads.
    pub n_heads: usize,
    /// Key and value heads; divides `n_heads`.
    pub n_kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Query rows.
    pub seq_len: usize,
    /// Position of the first query row.
    pub position: usize,
    /// Keys the cache has room for.
    pub capacity: usize,
    /// Keys that are filled.
    pub n_keys: usize,
    /// Whether a row sees only keys up to its own position.
    pub causal: bool,
    /// A row sees at most this many of the latest keys.
    pub window: Option<usize>,
    /// Factor of the scores, usually `1 / sqrt(head_dim)`.
    pub scale: f32,
    /// Scores are bent by `cap * tanh(score / cap)` (Gemma 2).
    pub soft_cap: Option<f32>,
}

/// An attention; `q` and the destination are `[seq_len, n_heads * head_dim]`.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// Queries.
    pub q: &'a [f32],
    /// Keys and values.
    pub cache: CacheSlices<'a>,
    /// Sizes.
    pub shape: AttentionShape,
}

impl AttentionShape {
    fn group(&self) -> usize {
        self.n_heads / self.n_kv_heads
    }

    /// Blocks of query rows of one key head.
    fn blocks(&self) -> usize {
        (self.seq_len * self.group()).div_ceil(ROWS)
    }

    /// Spans that are pieces of work of their own: those of a lone position. In prefill there are pieces enough without.
    fn spans(&self) -> Range<usize> {
        if self.seq_len == 1 { spans_of(&self.visible(self.position)) } else { 0..1 }
    }

    /// Keys that the query row at `position` sees.
    fn visible(&self, position: usize) -> Range<usize> {
        let end = if self.causal { (position + 1).min(self.n_keys) } else { self.n_keys };
        let start = self.window.map_or(0, |window| (position + 1).saturating_sub(window));
        start.min(end)..end
    }
}

impl Attention<'_> {
    /// Independent pieces of work.
    pub(super) fn chunks(&self) -> usize {
        self.shape.n_kv_heads * self.shape.blocks() * self.shape.spans().len()
    }

    /// Where pieces are spans, the values they write for [`merge`] instead of results; else 0.
    pub(super) fn parts_len(&self) -> usize {
        if self.shape.spans().len() > 1 { self.chunks() * part_len(self.shape.head_dim) } else { 0 }
    }

    /// Fails unless every slice is as long as the shape says; `dst_len` is the destination's.
    pub(super) fn check(&self, dst_len: usize) -> Result<()> {
        let shape = &self.shape;
        let divides = shape.n_kv_heads > 0 && shape.head_dim > 0 && shape.n_heads.is_multiple_of(shape.n_kv_heads);
        let product = |axes: [usize; 3]| axes.into_iter().try_fold(1usize, usize::checked_mul);
        let rows = product([shape.seq_len, shape.n_heads, shape.head_dim]);
        let cache = product([shape.n_kv_heads, shape.capacity, shape.head_dim]);
        let scales = product([shape.n_kv_heads, shape.capacity, shape.head_dim.div_ceil(KV_BLOCK)]);
        let lens = self.cache.lens();
        let sound = divides
            && self.cache.scales().is_none_or(|lens| lens.iter().all(|&len| scales == Some(len)))
            && rows == Some(self.q.len())
            && rows == Some(dst_len)
            && lens.iter().all(|&len| cache == Some(len))
            && shape.n_keys <= shape.capacity
            && shape.window != Some(0);
        if !sound {
            return Err(Error::internal(format!(
                "attention {shape:?} does not fit {} queries, {lens:?} keys and values and {dst_len} results",
                self.q.len(),
            )));
        }
        Ok(())
    }
}

/// How a cache stores a number.
trait Element: Copy {
    /// Reads a register of them.
    ///
    /// # Safety
    /// The processor has `I` and `I::LANES` values are readable.
    unsafe fn load<I: Isa>(from: *const Self) -> I::F;
    /// Its value.
    fn value(self) -> f32;
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn load<I: Isa>(from: *const Self) -> I::F {
        // SAFETY: the caller's promise.
        unsafe { I::load(from) }
    }
    #[inline(always)]
    fn value(self) -> f32 {
        self
    }
}

impl Element for u16 {
    #[inline(always)]
    unsafe fn load<I: Isa>(from: *const Self) -> I::F {
        // SAFETY: the caller's promise.
        unsafe { I::load_f16(from) }
    }
    #[inline(always)]
    fn value(self) -> f32 {
        f16_to_f32(self)
    }
}

/// The keys, or the values, of a cache, as rows of numbers that registers are loaded from.
trait Plane: Copy {
    /// How numbers are stored where they are read.
    type Element: Element;
    /// The rows from `first` on, of which those `within` are read; `scratch` may hold them.
    ///
    /// # Safety
    /// There are rows up to the end of `within`.
    unsafe fn rows(
        self,
        first: usize,
        within: Range<usize>,
        head_dim: usize,
        scratch: &mut Vec<f32>,
    ) -> *const Self::Element;
}

impl<E: Element> Plane for *const E {
    type Element = E;
    #[inline(always)]
    unsafe fn rows(self, first: usize, _within: Range<usize>, head_dim: usize, _scratch: &mut Vec<f32>) -> *const E {
        // SAFETY: the caller's promise.
        unsafe { self.add(first * head_dim) }
    }
}

impl Plane for ByteRows<'_> {
    type Element = f32;
    #[inline(always)]
    unsafe fn rows(self, first: usize, within: Range<usize>, head_dim: usize, scratch: &mut Vec<f32>) -> *const f32 {
        let blocks = head_dim.div_ceil(KV_BLOCK);
        scratch.resize(KEYS * head_dim, 0.0);
        let codes = self.codes[first * head_dim..].chunks_exact(head_dim);
        let tops = self.tops[first * blocks..].chunks_exact(blocks);
        let rows = scratch.chunks_exact_mut(head_dim).zip(codes).zip(tops);
        for ((row, codes), tops) in rows.take(within.end).skip(within.start) {
            for ((row, codes), top) in row.chunks_mut(KV_BLOCK).zip(codes.chunks(KV_BLOCK)).zip(tops) {
                let scale = top / 127.0;
                for (to, code) in row.iter_mut().zip(codes) {
                    *to = f32::from(*code) * scale;
                }
            }
        }
        scratch.as_ptr()
    }
}

/// The spans that hold some keys: one at least.
fn spans_of(keys: &Range<usize>) -> Range<usize> {
    let first = keys.start / SPAN;
    first..keys.end.div_ceil(SPAN).max(first + 1)
}

/// A block of query rows that share a key head.
struct Block {
    /// Where each row starts in `q` and the destination; rows past `n` repeat the last.
    starts: [usize; ROWS],
    /// Visible keys of each row.
    visible: [Range<usize>; ROWS],
    n: usize,
}

impl Block {
    fn new(shape: &AttentionShape, kv_head: usize, index: usize) -> Self {
        let group = shape.group();
        let n_rows = shape.seq_len * group;
        let first = index * ROWS;
        let n = (n_rows - first).min(ROWS);
        let mut starts = [0; ROWS];
        let mut visible = [0..0, 0..0, 0..0, 0..0];
        for i in 0..ROWS {
            let row = first + i.min(n - 1);
            let (token, head) = (row / group, kv_head * group + row % group);
            starts[i] = (token * shape.n_heads + head) * shape.head_dim;
            visible[i] = shape.visible(shape.position + token);
        }
        Self { starts, visible, n }
    }

    /// Keys that any row sees.
    fn keys(&self) -> Range<usize> {
        let start = self.visible.iter().map(|keys| keys.start).min().unwrap_or(0);
        let end = self.visible.iter().map(|keys| keys.end).max().unwrap_or(0);
        start..end
    }
}

/// Running maximum and sum of the softmax of each row.
struct Softmax {
    largest: [f32; ROWS],
    total: [f32; ROWS],
}

/// The results of an attention whose pieces wrote `parts`.
///
/// # Safety
/// `attention` was checked with the length of `dst`.
pub(super) unsafe fn merge(attention: &Attention<'_>, parts: &mut [f32], dst: &mut [f32]) {
    let shape = &attention.shape;
    let len = part_len(shape.head_dim);
    for (index, spans) in parts.chunks_exact_mut(len * shape.spans().len()).enumerate() {
        let (whole, later) = spans.split_at_mut(len);
        later.chunks_exact(len).for_each(|part| add_part(whole, part, shape.head_dim));
        let block = Block::new(shape, index / shape.blocks(), index % shape.blocks());
        // SAFETY: the rows of blocks lie in the destination, by the caller's promise.
        unsafe { finish(whole, &block.starts[..block.n], shape.head_dim, dst.as_mut_ptr()) };
    }
}

/// Scores of a block of keys, then their weights.
type Scores = [[f32; KEYS]; ROWS];

/// Computes chunk `chunk` of `attention`: its rows of `dst`, or where pieces are spans, part `chunk` in `dst`.
///
/// # Safety
/// The processor has `I`; `attention` was checked; `chunk < attention.chunks()`; the chunk's rows of `dst`, or its part, are
/// writable and nobody else touches them.
#[inline(always)]
pub(super) unsafe fn attention<I: Isa>(attention: &Attention<'_>, chunk: usize, dst: *mut f32) {
    // SAFETY: the caller's promises.
    unsafe {
        match attention.cache {
            CacheSlices::F16 { k, v } => run::<I, _>(attention, chunk, [k.as_ptr(), v.as_ptr()], dst),
            CacheSlices::F32 { k, v } => run::<I, _>(attention, chunk, [k.as_ptr(), v.as_ptr()], dst),
            CacheSlices::Q8 { k, v } => run::<I, _>(attention, chunk, [k, v], dst),
        }
    }
}

/// # Safety
/// As [`attention`]; the planes are those of its cache.
#[inline(always)]
unsafe fn run<I: Isa, P: Plane>(attention: &Attention<'_>, chunk: usize, [k, v]: [P; 2], dst: *mut f32) {
    let shape = &attention.shape;
    let len = part_len(shape.head_dim);
    let alone = shape.spans();
    let index = chunk / alone.len();
    let kv_head = index / shape.blocks();
    let block = Block::new(shape, kv_head, index % shape.blocks());
    let rows = BlockRows { attention, block: &block, kv_head };
    let (mut own, mut part, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    // SAFETY: the caller's promises.
    unsafe {
        let (spans, whole) = if alone.len() > 1 {
            let index = alone.start + chunk % alone.len();
            (index..index + 1, std::slice::from_raw_parts_mut(dst.add(chunk * len), len))
        } else {
            own.resize(len, 0.0);
            (spans_of(&block.keys()), own.as_mut_slice())
        };
        for index in spans.clone() {
            // Once in the code, which is inlined.
            let is_first = index == spans.start;
            part.resize(if is_first { 0 } else { len }, 0.0);
            span::<I, P>(&rows, index, [k, v], if is_first { &mut *whole } else { &mut part }, &mut scratch);
            if !is_first {
                add_part(whole, &part, shape.head_dim);
            }
        }
        if alone.len() == 1 {
            finish(whole, &block.starts[..block.n], shape.head_dim, dst);
        }
    }
}

/// A block of rows of an attention.
struct BlockRows<'a> {
    attention: &'a Attention<'a>,
    block: &'a Block,
    kv_head: usize,
}

/// What the keys of span `index` give, as a part.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn span<I: Isa, P: Plane>(
    rows: &BlockRows<'_>,
    index: usize,
    [k, v]: [P; 2],
    part: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    let BlockRows { attention, block, kv_head } = *rows;
    let shape = &attention.shape;
    let mut softmax = Softmax { largest: [f32::NEG_INFINITY; ROWS], total: [0.0; ROWS] };
    let mut scores = [[0f32; KEYS]; ROWS];
    let (to, state) = part.split_at_mut(ROWS * shape.head_dim);
    to.fill(0.0);
    let keys = block.keys();
    let end = keys.end.min((index + 1) * SPAN);
    let mut first = (keys.start / KEYS * KEYS).max(index * SPAN);
    // SAFETY: the caller's promises: the cache holds `capacity` rows of the head, and keys end before `n_keys`.
    unsafe {
        while first < end {
            let within = keys.start.max(first) - first..end.min(first + KEYS) - first;
            let row = kv_head * shape.capacity + first;
            let keys_at = k.rows(row, within.clone(), shape.head_dim, scratch);
            block_scores::<I, _>(attention, block, within.clone(), keys_at, &mut scores);
            let factors = softmax.weigh(block, first, &mut scores);
            let values_at = v.rows(row, within.clone(), shape.head_dim, scratch);
            block_values::<I, _>((within, shape.head_dim), &scores, factors, values_at, to.as_mut_ptr());
            first += KEYS;
        }
    }
    state[..ROWS].copy_from_slice(&softmax.largest);
    state[ROWS..].copy_from_slice(&softmax.total);
}

/// Scores of the keys `within` a block that starts at `k`.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn block_scores<I: Isa, E: Element>(
    attention: &Attention<'_>,
    block: &Block,
    within: Range<usize>,
    k: *const E,
    scores: &mut Scores,
) {
    let shape = &attention.shape;
    let head_dim = shape.head_dim;
    let q = attention.q.as_ptr();
    for j in within.clone() {
        // SAFETY: the caller's promises; every query row is `head_dim` long.
        unsafe {
            let k = k.add(j * head_dim);
            let mut sums = [I::splat(0.0); ROWS];
            let mut d = 0;
            while d + I::LANES <= head_dim {
                let key = E::load::<I>(k.add(d));
                for (sum, &start) in sums.iter_mut().zip(&block.starts) {
                    *sum = I::fma(I::load(q.add(start + d)), key, *sum);
                }
                d += I::LANES;
            }
            let mut sums = I::sum4(sums);
            while d < head_dim {
                let key = (*k.add(d)).value();
                for (sum, &start) in sums.iter_mut().zip(&block.starts) {
                    *sum += *q.add(start + d) * key;
                }
                d += 1;
            }
            for (row, sum) in scores.iter_mut().zip(sums) {
                row[j] = sum * shape.scale;
            }
        }
    }
    if let Some(cap) = shape.soft_cap {
        for row in scores.iter_mut() {
            for score in &mut row[within.clone()] {
                *score = cap * (*score / cap).tanh();
            }
        }
    }
}

impl Softmax {
    /// Turns the scores of the block of keys at `first` into weights and returns what earlier sums shrink by. Rows that
    /// repeat the last keep their scores.
    #[inline(always)]
    fn weigh(&mut self, block: &Block, first: usize, scores: &mut Scores) -> [f32; ROWS] {
        let mut factors = [1.0; ROWS];
        for (i, row) in scores.iter_mut().enumerate().take(block.n) {
            let visible = &block.visible[i];
            let start = visible.start.clamp(first, first + KEYS) - first;
            let end = visible.end.clamp(first, first + KEYS) - first;
            if start >= end {
                row.fill(0.0);
                continue;
            }
            row[..start].fill(f32::NEG_INFINITY);
            row[end..].fill(f32::NEG_INFINITY);
            let mut tops = [self.largest[i]; SUMS];
            for scores in row.as_chunks::<SUMS>().0 {
                for (top, &score) in tops.iter_mut().zip(scores) {
                    *top = if score > *top { score } else { *top };
                }
            }
            let largest = tops.into_iter().fold(f32::NEG_INFINITY, |top, score| if score > top { score } else { top });
            if self.largest[i] == f32::NEG_INFINITY {
                factors[i] = 0.0;
            } else {
                factors[i] = exp(self.largest[i] - largest);
            }
            self.largest[i] = largest;
            let mut totals = [0f32; SUMS];
            for scores in row.as_chunks_mut::<SUMS>().0 {
                for (score, total) in scores.iter_mut().zip(&mut totals) {
                    *score = exp(*score - largest);
                    *total += *score;
                }
            }
            self.total[i] = self.total[i] * factors[i] + totals.iter().sum::<f32>();
        }
        factors
    }
}

/// Adds the weighted values of a block that starts at `v` to the rows at `dst`, shrinking what is there.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn block_values<I: Isa, E: Element>(
    (within, head_dim): (Range<usize>, usize),
    scores: &Scores,
    factors: [f32; ROWS],
    v: *const E,
    dst: *mut f32,
) {
    let mut d = 0;
    // SAFETY: the caller's promises; `d` stays inside a head.
    unsafe {
        while d + 2 * I::LANES <= head_dim {
            value_lanes::<I, E, 2>((within.clone(), head_dim), scores, factors, v.add(d), dst.add(d));
            d += 2 * I::LANES;
        }
        while d + I::LANES <= head_dim {
            value_lanes::<I, E, 1>((within.clone(), head_dim), scores, factors, v.add(d), dst.add(d));
            d += I::LANES;
        }
        while d < head_dim {
            for (i, scores) in scores.iter().enumerate() {
                let to = dst.add(i * head_dim + d);
                let mut sum = *to * factors[i];
                for j in within.clone() {
                    sum += scores[j] * (*v.add(j * head_dim + d)).value();
                }
                *to = sum;
            }
            d += 1;
        }
    }
}

/// The same for `V` registers of a head.
///
/// # Safety
/// As [`run`], with `V * LANES` values left in the head at `v` and `dst`.
#[inline(always)]
unsafe fn value_lanes<I: Isa, E: Element, const V: usize>(
    (within, head_dim): (Range<usize>, usize),
    scores: &Scores,
    factors: [f32; ROWS],
    v: *const E,
    dst: *mut f32,
) {
    // SAFETY: the caller's promises.
    unsafe {
        let mut sums = [[I::splat(0.0); V]; ROWS];
        for (i, row) in sums.iter_mut().enumerate() {
            for (lane, sum) in row.iter_mut().enumerate() {
                *sum = I::mul(I::load(dst.add(i * head_dim + lane * I::LANES)), I::splat(factors[i]));
            }
        }
        for j in within {
            let mut values = [I::splat(0.0); V];
            for (lane, value) in values.iter_mut().enumerate() {
                *value = E::load::<I>(v.add(j * head_dim + lane * I::LANES));
            }
            for (row, scores) in sums.iter_mut().zip(scores) {
                let weight = I::splat(scores[j]);
                for (sum, value) in row.iter_mut().zip(values) {
                    *sum = I::fma(weight, value, *sum);
                }
            }
        }
        for (i, row) in sums.iter().enumerate() {
            for (lane, &sum) in row.iter().enumerate() {
                I::store(dst.add(i * head_dim + lane * I::LANES), sum);
            }
        }
    }
}
