//! The safe face of the kernels: checks every length, divides work among threads, and calls the processor's table.

#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::activations::{QuantizeRow, QuantizedRows, Wanted};
use super::attention::{Attention, merge};
use super::elementwise::Unary;
use super::matmul::{CodedShare, DenseShare, Destination};
use super::matrix::CpuMatrix;
use super::pool::Pool;
use super::table::Kernels;
use crate::error::{Error, Result};
use crate::quant::PackedLayout;

/// Values a thread should get at least of row-wise work, so that waking it pays.
const MIN_VALUES: usize = 1 << 14;
/// The same of work that takes an exponential for each value.
const MIN_EXPONENTIALS: usize = 1 << 9;
/// Multiply-adds a chunk of a product should have at least.
const MIN_PRODUCTS: usize = 1 << 17;
/// Tiles that a chunk is a multiple of: what the widest register spans.
const TILE_STEP: usize = 4;

/// Kernels and threads.
#[derive(Debug)]
pub struct Compute {
    kernels: &'static Kernels,
    pool: Pool,
}

/// The activations of a product, `[rows, columns]`.
#[derive(Debug, Clone, Copy)]
pub struct MatmulInput<'a> {
    /// As floats: what dense weights read.
    pub values: &'a [f32],
    /// As integers, quantized for these weights: what coded ones read; may be `None` where no weight is coded.
    pub quantized: Option<&'a QuantizedRows>,
    /// Rows.
    pub rows: usize,
}

/// One weight to multiply with and where its result goes, `[rows, weight.rows()]`.
#[derive(Debug)]
pub struct MatmulJob<'a> {
    /// The weight, `[n, k]`.
    pub weight: &'a CpuMatrix,
    /// The result.
    pub dst: &'a mut [f32],
}

/// Rotary positions of consecutive rows.
#[derive(Debug, Clone, Copy)]
pub struct Rotary<'a> {
    /// (cos, sin) of each pair, `[rows, n_pairs, 2]`.
    pub turns: &'a [f32],
    /// Pairs of a head that turn.
    pub n_pairs: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Whether neighbours are paired, rather than values `n_pairs` apart.
    pub interleaved: bool,
}

/// A destination that threads write disjoint parts of.
struct SharedMut(*mut f32);

// SAFETY: every use writes only the part that belongs to its chunk.
unsafe impl Sync for SharedMut {}

impl SharedMut {
    /// The `len` values at `start`.
    ///
    /// # Safety
    /// They lie inside the destination and no other chunk touches them.
    #[allow(clippy::mut_from_ref, reason = "disjoint parts are the point of the type")]
    unsafe fn part(&self, start: usize, len: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// A job among others of one region.
struct Target<'a> {
    weight: &'a CpuMatrix,
    dst: SharedMut,
    /// Tiles of the jobs before, each rounded up to [`TILE_STEP`].
    start: usize,
}

fn expect_len(what: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::internal(format!("expected {expected} {what}, found {found}")))
}

impl Compute {
    /// The best kernels of this processor on `threads` threads, the caller being one.
    ///
    /// # Errors
    /// As [`Pool::new`].
    pub fn new(threads: usize) -> Result<Self> {
        Self::with_kernels(Kernels::best(), threads)
    }

    /// The same with chosen kernels.
    ///
    /// # Errors
    /// As [`Pool::new`].
    pub fn with_kernels(kernels: &'static Kernels, threads: usize) -> Result<Self> {
        Ok(Self { kernels, pool: Pool::new(threads)? })
    }

    /// The kernels in use.
    #[must_use]
    pub fn kernels(&self) -> &'static Kernels {
        self.kernels
    }

    /// The threads.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Quantizes `values`, `[rows, columns]` of the weights, into `out`, as the products with the coded ones of `weights`
    /// read them: with a scale for every 32 columns.
    ///
    /// # Errors
    /// `Internal` when `values` is not that long.
    pub fn quantize(&self, values: &[f32], rows: usize, weights: &[&CpuMatrix], out: &mut QuantizedRows) -> Result<()> {
        self.quantize_rows(values, rows, (weights, false), out)
    }

    /// As [`Compute::quantize`], with one scale and one zero point for a row: bytes from its least and largest value.
    /// Products with such rows need the row sums of their weights.
    ///
    /// # Errors
    /// As [`Compute::quantize`].
    pub fn quantize_whole(
        &self,
        values: &[f32],
        rows: usize,
        weights: &[&CpuMatrix],
        out: &mut QuantizedRows,
    ) -> Result<()> {
        self.quantize_rows(values, rows, (weights, true), out)
    }

    fn quantize_rows(
        &self,
        values: &[f32],
        rows: usize,
        (weights, whole): (&[&CpuMatrix], bool),
        out: &mut QuantizedRows,
    ) -> Result<()> {
        let wanted = weights.iter().map(|weight| self.kernels.wanted(weight.layout()));
        let columns = weights.first().map_or(1, |weight| weight.columns());
        out.reshape((rows, columns), wanted.fold(Wanted::default(), Wanted::or), whole);
        let per_chunk = self.per_chunk(rows, columns);
        if per_chunk >= rows {
            out.jobs(values)?.for_each(|job| self.quantize_row(job));
            return Ok(());
        }
        let mut chunks: Vec<_> = (0..rows.div_ceil(per_chunk)).map(|_| Mutex::new(Vec::new())).collect();
        for (index, job) in out.jobs(values)?.enumerate() {
            if let Some(jobs) = chunks.get_mut(index / per_chunk) {
                jobs.get_mut().unwrap_or_else(PoisonError::into_inner).push(job);
            }
        }
        self.pool.run(chunks.len(), &|chunk| {
            let mut jobs = chunks[chunk].lock().unwrap_or_else(PoisonError::into_inner);
            jobs.drain(..).for_each(|job| self.quantize_row(job));
        })
    }

    fn quantize_row(&self, job: QuantizeRow<'_>) {
        // SAFETY: the table is this processor's.
        unsafe { (self.kernels.quantize)(job) };
    }

    /// Multiplies the activations with every weight of `jobs` in one parallel region:
    /// `dst[i, n] = sum_k input[i, k] * weight[n, k]`.
    ///
    /// # Errors
    /// `Internal` when lengths disagree, or a coded weight meets no activations quantized for it, or whole rows of them and has
    /// no row sums.
    pub fn matmul(&self, input: MatmulInput<'_>, jobs: &mut [MatmulJob<'_>]) -> Result<()> {
        jobs.iter().try_for_each(|job| self.check_job(&input, job))?;
        let mut end = 0;
        let targets: Vec<Target<'_>> = jobs
            .iter_mut()
            .map(|job| {
                let start = end;
                end += job.weight.tiles().next_multiple_of(TILE_STEP);
                Target { weight: job.weight, dst: SharedMut(job.dst.as_mut_ptr()), start }
            })
            .collect();
        let products = targets.first().map_or(1, |target| 4 * target.weight.columns() * input.rows);
        let chunks = self.divide(end, products);
        self.pool.run(chunks.len(), &|chunk| {
            for target in &targets {
                // SAFETY: lengths were checked; chunks have disjoint tiles, and jobs disjoint destinations.
                unsafe { self.multiply(&input, target, &chunks[chunk]) };
            }
        })?;
        let shifts = input.quantized.map_or(&[] as &[f32], |x| &x.shifts);
        jobs.iter_mut().for_each(|job| add_shifts(shifts, job));
        Ok(())
    }

    fn check_job(&self, input: &MatmulInput<'_>, job: &MatmulJob<'_>) -> Result<()> {
        let weight = job.weight;
        expect_len("results", input.rows * weight.rows(), job.dst.len())?;
        let PackedLayout::Coded { .. } = weight.layout() else {
            return expect_len("activations", input.rows * weight.columns(), input.values.len());
        };
        let wanted = self.kernels.wanted(weight.layout());
        let Some(x) = input.quantized.filter(|x| x.has(wanted)) else {
            return Err(Error::internal("a coded weight was given no activations quantized for it"));
        };
        if !x.shifts.is_empty() {
            expect_len("row sums", weight.rows(), weight.row_sums().len())?;
        }
        expect_len("quantized rows", input.rows, x.rows())?;
        expect_len("quantized columns", weight.columns(), x.columns())
    }

    /// The sums of a coded weight's rows, in the order of the rows.
    ///
    /// # Errors
    /// As [`Compute::matmul`].
    pub fn row_sums(&self, weight: &CpuMatrix) -> Result<Vec<f32>> {
        let values = vec![1.0; weight.columns()];
        let mut quantized = QuantizedRows::default();
        self.quantize(&values, 1, &[weight], &mut quantized)?;
        let mut sums = vec![0.0; weight.rows()];
        let input = MatmulInput { values: &values, quantized: Some(&quantized), rows: 1 };
        self.matmul(input, &mut [MatmulJob { weight, dst: &mut sums }])?;
        Ok(sums)
    }

    /// The products of the tiles of a job that lie among `tiles`.
    ///
    /// # Safety
    /// The job was checked with this input, and nobody else writes the results of those tiles.
    unsafe fn multiply(&self, input: &MatmulInput<'_>, target: &Target<'_>, tiles: &Range<usize>) {
        let Target { weight, dst, start } = target;
        let dst = Destination { values: dst.0, stride: weight.rows() };
        let tiles = tiles.start.saturating_sub(*start)..tiles.end.saturating_sub(*start).min(weight.tiles());
        if tiles.is_empty() {
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            match (weight.layout(), input.quantized) {
                (PackedLayout::Coded { .. }, Some(x)) => (self.kernels.coded)(&CodedShare { weight, x, tiles, dst }),
                _ => (self.kernels.dense)(&DenseShare { weight, x: input.values, tiles, dst }),
            }
        }
    }

    /// Divides `tiles`, each of so many products: half of them evenly among the threads, then half of the rest, and so on,
    /// so that few chunks keep all busy and those at the end are short (factoring, Hummel et al., 1992). What is left for
    /// a last time is divided evenly. How does not change results.
    fn divide(&self, tiles: usize, products: usize) -> Vec<Range<usize>> {
        let threads = self.pool.threads();
        let least = MIN_PRODUCTS.div_ceil(products.max(1));
        let mut chunks = Vec::new();
        let mut start = 0;
        while start < tiles {
            let left = tiles - start;
            let parts = if threads == 1 || left <= 2 * threads * least { threads } else { 2 * threads };
            let step = left.div_ceil(parts).max(least).next_multiple_of(TILE_STEP);
            for _ in 0..threads {
                let end = (start + step).min(tiles);
                if start < end {
                    chunks.push(start..end);
                }
                start = end;
            }
        }
        chunks
    }

    /// Attention over a cache; `dst` is `[seq_len, n_heads * head_dim]`. A row that sees no key gives 0. `parts` is scratch.
    ///
    /// # Errors
    /// `Internal` when lengths disagree with the shape.
    pub fn attention(&self, attention: &Attention<'_>, parts: &mut Vec<f32>, dst: &mut [f32]) -> Result<()> {
        attention.check(dst.len())?;
        parts.resize(attention.parts_len(), 0.0);
        let to = &SharedMut(if parts.is_empty() { dst.as_mut_ptr() } else { parts.as_mut_ptr() });
        self.pool.run(attention.chunks(), &|chunk| {
            // SAFETY: the shape was checked, and chunks write disjoint rows, or parts.
            unsafe { (self.kernels.attention)(attention, chunk, to.0) }
        })?;
        if !parts.is_empty() {
            // SAFETY: it was checked.
            unsafe { merge(attention, parts, dst) };
        }
        Ok(())
    }

    /// `dst = x / sqrt(mean(x^2) + eps) * weight` for each row of `weight.len()` values.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, dst: &mut [f32]) -> Result<()> {
        self.rows(x, weight.len(), dst, &|x, dst| {
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.rms_norm)(x, weight, eps, dst) }
        })
    }

    /// `dst = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias` for each row of `weight.len()` values.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn layer_norm(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>, eps: f32, dst: &mut [f32]) -> Result<()> {
        let bias = bias.unwrap_or_default();
        if !bias.is_empty() {
            expect_len("biases", weight.len(), bias.len())?;
        }
        self.rows(x, weight.len(), dst, &|x, dst| {
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.layer_norm)(x, (weight, bias), eps, dst) }
        })
    }

    /// Softmax of each row of `columns` values.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn softmax(&self, x: &[f32], columns: usize, dst: &mut [f32]) -> Result<()> {
        self.rows(x, columns, dst, &|x, dst| {
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.softmax)(x, dst) }
        })
    }

    /// `values = op(values)`.
    ///
    /// # Errors
    /// `Internal` when a kernel panicked.
    pub fn unary(&self, op: Unary, values: &mut [f32]) -> Result<()> {
        self.split(values, MIN_EXPONENTIALS, &|_, values| {
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.unary)(op, values) }
        })
    }

    /// `values = op(values) * up`.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn gate(&self, op: Unary, values: &mut [f32], up: &[f32]) -> Result<()> {
        expect_len("gated values", values.len(), up.len())?;
        self.split(values, MIN_EXPONENTIALS, &|start, values| {
            // SAFETY: the table is this processor's.
            unsafe {
                (self.kernels.unary)(op, values);
                (self.kernels.mul)(values, &up[start..start + values.len()]);
            }
        })
    }

    /// `dst += other`; `other` is repeated for each row of its length.
    ///
    /// # Errors
    /// `Internal` when `dst` is no multiple of `other`.
    pub fn add(&self, dst: &mut [f32], other: &[f32]) -> Result<()> {
        if dst.len() == other.len() {
            return self.split(dst, MIN_VALUES, &|start, dst| {
                // SAFETY: the table is this processor's.
                unsafe { (self.kernels.add)(dst, &other[start..start + dst.len()]) }
            });
        }
        if other.is_empty() || !dst.len().is_multiple_of(other.len()) {
            return Err(Error::internal(format!("{} values cannot be added to {}", other.len(), dst.len())));
        }
        for dst in dst.chunks_exact_mut(other.len()) {
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.add)(dst, other) };
        }
        Ok(())
    }

    /// `dst *= other`.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn mul(&self, dst: &mut [f32], other: &[f32]) -> Result<()> {
        expect_len("factors", dst.len(), other.len())?;
        self.split(dst, MIN_VALUES, &|start, dst| {
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.mul)(dst, &other[start..start + dst.len()]) }
        })
    }

    /// Rotates every head of `x`, `[rows, width]`, in place.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn rotate(&self, x: &mut [f32], width: usize, rotary: &Rotary<'_>) -> Result<()> {
        let Rotary { turns, n_pairs, head_dim, interleaved } = *rotary;
        if n_pairs == 0 || 2 * n_pairs > head_dim || !width.is_multiple_of(head_dim) {
            return Err(Error::internal(format!("{n_pairs} pairs do not fit heads of {head_dim} in rows of {width}")));
        }
        let rows = x.len() / width.max(1);
        expect_len("rotated values", rows * width, x.len())?;
        expect_len("turns", rows * 2 * n_pairs, turns.len())?;
        for (row, turns) in x.chunks_exact_mut(width).zip(turns.chunks_exact(2 * n_pairs)) {
            for head in row.chunks_exact_mut(head_dim) {
                // SAFETY: the table is this processor's.
                unsafe { (self.kernels.rotate)(head, turns, interleaved) };
            }
        }
        Ok(())
    }

    /// Calls `kernel` for each row of `columns` values.
    fn rows(
        &self,
        x: &[f32],
        columns: usize,
        dst: &mut [f32],
        kernel: &(dyn Fn(&[f32], &mut [f32]) + Sync),
    ) -> Result<()> {
        expect_len("values", x.len(), dst.len())?;
        if columns == 0 || !x.len().is_multiple_of(columns) {
            return Err(Error::internal(format!("{} values are no rows of {columns}", x.len())));
        }
        let n_rows = x.len() / columns;
        let per_chunk = self.per_chunk(n_rows, columns);
        let dst = &SharedMut(dst.as_mut_ptr());
        self.pool.run(n_rows.div_ceil(per_chunk), &|chunk| {
            for row in chunk * per_chunk..((chunk + 1) * per_chunk).min(n_rows) {
                let start = row * columns;
                // SAFETY: the row lies inside, and belongs to this chunk alone.
                kernel(&x[start..start + columns], unsafe { dst.part(start, columns) });
            }
        })
    }

    /// Calls `kernel` for parts of `dst`, of at least `least` values, and where they start.
    fn split(&self, dst: &mut [f32], least: usize, kernel: &(dyn Fn(usize, &mut [f32]) + Sync)) -> Result<()> {
        let len = dst.len();
        let per_chunk = len.div_ceil(self.pool.threads()).max(least);
        let dst = &SharedMut(dst.as_mut_ptr());
        self.pool.run(len.div_ceil(per_chunk), &|chunk| {
            let start = chunk * per_chunk;
            // SAFETY: the part lies inside, and belongs to this chunk alone.
            kernel(start, unsafe { dst.part(start, per_chunk.min(len - start)) });
        })
    }

    /// Rows of a chunk of row-wise work.
    fn per_chunk(&self, n_rows: usize, columns: usize) -> usize {
        let even = n_rows.div_ceil(self.pool.threads());
        even.max(MIN_VALUES.div_ceil(columns)).max(1)
    }
}

/// Adds what the values of activation rows exceed those of their codes by, times the weight's row sums.
fn add_shifts(shifts: &[f32], job: &mut MatmulJob<'_>) {
    if !job.weight.is_coded() {
        return;
    }
    for (shift, dst) in shifts.iter().zip(job.dst.chunks_exact_mut(job.weight.rows().max(1))) {
        for (dst, sum) in dst.iter_mut().zip(job.weight.row_sums()) {
            *dst += shift * sum;
        }
    }
}
