//! The safe face of the kernels: checks every length, divides work among threads, and calls the processor's table.

#![allow(unsafe_code)]

use super::activations::QuantizedRows;
use super::attention::Attention;
use super::elementwise::Unary;
use super::matmul::{CodedShare, DenseShare, Destination};
use super::matrix::CpuMatrix;
use super::pool::Pool;
use super::table::Kernels;
use crate::error::{Error, Result};
use crate::quant::PackedLayout;

/// Values a thread should get at least of row-wise work, so that waking it pays.
const MIN_VALUES: usize = 1 << 14;
/// Multiply-adds a chunk of a product should have at least.
const MIN_PRODUCTS: usize = 1 << 17;
/// Chunks of a product per thread: enough that a slow thread does not hold up the rest.
const CHUNKS_PER_THREAD: usize = 4;
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
    /// As int8: what coded weights read; may be `None` where no weight is coded.
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

/// Rotary positions of consecutive rows: `cos` and `sin` are `[rows, half]` for the first `2 * half` values of a head.
#[derive(Debug, Clone, Copy)]
pub struct Rotary<'a> {
    /// Cosines.
    pub cos: &'a [f32],
    /// Sines.
    pub sin: &'a [f32],
    /// Pairs of a head.
    pub half: usize,
    /// Whether neighbours are paired, rather than the two halves.
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

/// A share of a job: its index and its tiles.
struct Share {
    job: usize,
    tiles: std::ops::Range<usize>,
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

    /// Quantizes `values`, `[rows, columns]`, into `out`.
    ///
    /// # Errors
    /// `Internal` when `values` has another length.
    pub fn quantize(&self, values: &[f32], rows: usize, columns: usize, out: &mut QuantizedRows) -> Result<()> {
        out.reshape(rows, columns, self.kernels.wide);
        for job in out.jobs(values)? {
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.quantize)(job) };
        }
        Ok(())
    }

    /// Multiplies the activations with every weight of `jobs` in one parallel region:
    /// `dst[i, n] = sum_k input[i, k] * weight[n, k]`.
    ///
    /// # Errors
    /// `Internal` when lengths disagree, or a coded weight meets no quantized activations.
    pub fn matmul(&self, input: MatmulInput<'_>, jobs: &mut [MatmulJob<'_>]) -> Result<()> {
        let mut shares = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            check_job(&input, job)?;
            self.divide(&input, job.weight, index, &mut shares);
        }
        let targets: Vec<(&CpuMatrix, SharedMut)> =
            jobs.iter_mut().map(|job| (job.weight, SharedMut(job.dst.as_mut_ptr()))).collect();
        self.pool.run(shares.len(), &|chunk| {
            let share = &shares[chunk];
            let (weight, target) = &targets[share.job];
            let dst = Destination { values: target.0, stride: weight.rows() };
            let tiles = share.tiles.clone();
            // SAFETY: lengths were checked; shares of a job have disjoint tiles, and jobs disjoint destinations.
            unsafe {
                match (weight.layout(), input.quantized) {
                    (PackedLayout::Coded { .. }, Some(x)) => (self.kernels.coded)(&CodedShare { weight, x, tiles, dst }),
                    _ => (self.kernels.dense)(&DenseShare { weight, x: input.values, tiles, dst }),
                }
            }
        })
    }

    /// Divides a job's tiles into shares. How does not change results.
    fn divide(&self, input: &MatmulInput<'_>, weight: &CpuMatrix, job: usize, shares: &mut Vec<Share>) {
        let tiles = weight.tiles();
        let products = weight.rows() * weight.columns() * input.rows;
        let threads = self.pool.threads();
        let wanted = if threads == 1 { 1 } else { threads * CHUNKS_PER_THREAD };
        let n = wanted.min(products / MIN_PRODUCTS).max(1);
        let step = tiles.div_ceil(n).next_multiple_of(TILE_STEP);
        let mut start = 0;
        while start < tiles {
            let end = (start + step).min(tiles);
            shares.push(Share { job, tiles: start..end });
            start = end;
        }
    }

    /// Attention over a cache; `dst` is `[seq_len, n_heads * head_dim]`. A row that sees no key gives 0.
    ///
    /// # Errors
    /// `Internal` when lengths disagree with the shape.
    pub fn attention(&self, attention: &Attention<'_>, dst: &mut [f32]) -> Result<()> {
        attention.check(dst.len())?;
        let dst = SharedMut(dst.as_mut_ptr());
        let dst = &dst;
        self.pool.run(attention.chunks(), &|chunk| {
            // SAFETY: the shape was checked, and chunks write disjoint rows.
            unsafe { (self.kernels.attention)(attention, chunk, dst.0) }
        })
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

    /// `dst = op(x)`.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn unary(&self, op: Unary, x: &[f32], dst: &mut [f32]) -> Result<()> {
        expect_len("values", x.len(), dst.len())?;
        self.split(dst, &|start, dst| {
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.unary)(op, &x[start..start + dst.len()], dst) }
        })
    }

    /// `dst = op(gate) * up`.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn gated(&self, op: Unary, gate: &[f32], up: &[f32], dst: &mut [f32]) -> Result<()> {
        expect_len("gates", dst.len(), gate.len())?;
        expect_len("gated values", dst.len(), up.len())?;
        self.split(dst, &|start, dst| {
            let part = start..start + dst.len();
            // SAFETY: the table is this processor's.
            unsafe { (self.kernels.gated)(op, &gate[part.clone()], &up[part], dst) }
        })
    }

    /// `dst = a + b`.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn add(&self, a: &[f32], b: &[f32], dst: &mut [f32]) -> Result<()> {
        self.binary(self.kernels.add, a, b, dst)
    }

    /// `dst = a * b`.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn mul(&self, a: &[f32], b: &[f32], dst: &mut [f32]) -> Result<()> {
        self.binary(self.kernels.mul, a, b, dst)
    }

    /// Rotates every head of `x`, `[rows, n_heads, head_dim]`, in place.
    ///
    /// # Errors
    /// `Internal` when lengths disagree.
    pub fn rotate(&self, x: &mut [f32], head_dim: usize, n_heads: usize, rotary: &Rotary<'_>) -> Result<()> {
        let width = head_dim * n_heads;
        let rows = if width == 0 { 0 } else { x.len() / width };
        expect_len("rotated values", rows * width, x.len())?;
        expect_len("cosines", rows * rotary.half, rotary.cos.len())?;
        expect_len("sines", rows * rotary.half, rotary.sin.len())?;
        if rotary.half == 0 || 2 * rotary.half > head_dim {
            return Err(Error::internal(format!("{} pairs cannot be rotated in a head of {head_dim}", rotary.half)));
        }
        let angles = rotary.cos.chunks_exact(rotary.half).zip(rotary.sin.chunks_exact(rotary.half));
        for (row, (cos, sin)) in x.chunks_exact_mut(width).zip(angles) {
            for head in row.chunks_exact_mut(head_dim) {
                // SAFETY: the table is this processor's.
                unsafe { (self.kernels.rotate)(head, cos, sin, rotary.interleaved) };
            }
        }
        Ok(())
    }

    fn binary(
        &self,
        kernel: unsafe fn(&[f32], &[f32], &mut [f32]),
        a: &[f32],
        b: &[f32],
        dst: &mut [f32],
    ) -> Result<()> {
        expect_len("left values", dst.len(), a.len())?;
        expect_len("right values", dst.len(), b.len())?;
        self.split(dst, &|start, dst| {
            let part = start..start + dst.len();
            // SAFETY: the table is this processor's.
            unsafe { kernel(&a[part.clone()], &b[part], dst) }
        })
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

    /// Calls `kernel` for parts of `dst` and where they start.
    fn split(&self, dst: &mut [f32], kernel: &(dyn Fn(usize, &mut [f32]) + Sync)) -> Result<()> {
        let len = dst.len();
        let per_chunk = self.per_chunk(len, 1);
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

fn check_job(input: &MatmulInput<'_>, job: &MatmulJob<'_>) -> Result<()> {
    let weight = job.weight;
    expect_len("results", input.rows * weight.rows(), job.dst.len())?;
    let PackedLayout::Coded { .. } = weight.layout() else {
        return expect_len("activations", input.rows * weight.columns(), input.values.len());
    };
    let Some(x) = input.quantized else {
        return Err(Error::internal("a coded weight was given no quantized activations"));
    };
    expect_len("quantized rows", input.rows, x.rows())?;
    expect_len("quantized columns", weight.columns(), x.columns())
}
