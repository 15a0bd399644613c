//! Speed of the CPU kernels: multiply-adds and bytes of weights a second, per layout, instruction set and shape.
//!
//! `cargo bench --bench ops [-- FILTER]`: only kernels whose name contains FILTER, e.g. `avx2` or `matvec/b4g32/`.
//! The matrices of one case together exceed the caches, so a matrix-vector product reads weights from memory, as
//! decoding does; the last column says which share of this machine's plain reading speed that is.

use hanzo_edge::error::Result;
use hanzo_edge::kernels::{Compute, CpuMatrix, Kernels, MatmulInput, MatmulJob, QuantizedRows};
use hanzo_edge::quant::{Codes, PackedLayout, PackedRows};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes that the matrices of a case have together at least.
const WORKING_SET: usize = 96 << 20;
/// How long a case is repeated.
const TIME: Duration = Duration::from_millis(300);
/// Rows, columns and activation rows.
const SHAPES: &[(usize, usize, usize)] = &[(1536, 576, 1), (4096, 4096, 1), (1536, 576, 64), (4096, 4096, 16)];

fn layouts() -> Vec<PackedLayout> {
    let coded = |codes, group, affine| PackedLayout::Coded { codes, group, affine };
    vec![
        coded(Codes::B4, 32, false),
        coded(Codes::B4, 32, true),
        coded(Codes::B4, 64, true),
        coded(Codes::B2, 64, true),
        coded(Codes::B3, 64, true),
        coded(Codes::B6, 64, true),
        coded(Codes::B2, 16, true),
        coded(Codes::B3, 16, false),
        coded(Codes::B5, 32, false),
        coded(Codes::B5, 32, true),
        coded(Codes::B6, 16, false),
        coded(Codes::B8, 32, false),
        PackedLayout::F16,
        PackedLayout::F32,
    ]
}

/// A matrix of arbitrary codes; what it holds does not change its speed.
fn matrix(layout: PackedLayout, rows: usize, columns: usize) -> Result<CpuMatrix> {
    let mut packed = PackedRows::zeros(layout, rows, columns)?;
    let mut state = 1u32;
    for word in packed.low.iter_mut().chain(&mut packed.high) {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // For f16 and f32 this is a normal number of moderate size.
        *word = (state >> 1) & 0x3FFF_3FFF | 0x1000_1000;
    }
    packed.scales.fill(0x2C00_2C00);
    CpuMatrix::new(&packed)
}

/// Bytes a second at which one thread reads memory.
fn stream_speed() -> f64 {
    let words = vec![1u64; 256 << 17];
    let mut best = 0.0f64;
    for _ in 0..5 {
        let start = Instant::now();
        black_box(black_box(&words).iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
        best = best.max((words.len() * 8) as f64 / start.elapsed().as_secs_f64());
    }
    best
}

struct Case {
    layout: PackedLayout,
    rows: usize,
    columns: usize,
    n: usize,
}

/// Seconds of one product, the best of many.
fn measure(compute: &Compute, case: &Case) -> Result<f64> {
    let Case { layout, rows, columns, n } = *case;
    let bytes: usize = layout.plane_bytes(rows, columns).iter().sum();
    let matrices = (0..WORKING_SET.div_ceil(bytes)).map(|_| matrix(layout, rows, columns));
    let matrices = matrices.collect::<Result<Vec<_>>>()?;
    let values: Vec<f32> = (0..n * columns).map(|i| (i % 17) as f32 - 8.0).collect();
    let mut quantized = QuantizedRows::default();
    compute.quantize(&values, n, &matrices.iter().collect::<Vec<_>>(), &mut quantized)?;
    let input = MatmulInput { values: &values, quantized: Some(&quantized), rows: n };
    let mut dst = vec![0f32; n * rows];
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed() < TIME {
        let start = Instant::now();
        let mut products = 0;
        for weight in &matrices {
            compute.matmul(input, &mut [MatmulJob { weight, dst: &mut dst }])?;
            products += 1;
            if start.elapsed() > TIME / 4 {
                break;
            }
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(products));
    }
    Ok(best)
}

fn main() -> Result<()> {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let stream = stream_speed();
    println!("one thread reads {:.1} GB/s", stream / 1e9);
    println!("{:44} {:>8} {:>8} {:>7}", "kernel", "GMAC/s", "GB/s", "stream");
    for kernels in Kernels::available() {
        let compute = Compute::with_kernels(kernels, 1)?;
        for layout in layouts() {
            for &(rows, columns, n) in SHAPES {
                let kind = if n == 1 { "matvec" } else { "matmul" };
                let name = format!("{kind}/{}/{}/{rows}x{columns}x{n}", layout.name(), kernels.name());
                if !name.contains(&filter) {
                    continue;
                }
                let seconds = measure(&compute, &Case { layout, rows, columns, n })?;
                let products = (rows * columns * n) as f64 / seconds;
                let bytes = layout.plane_bytes(rows, columns).iter().sum::<usize>() as f64 / seconds;
                println!("{name:44} {:8.1} {:8.1} {:6.0}%", products / 1e9, bytes / 1e9, 100.0 * bytes / stream);
            }
        }
    }
    Ok(())
}
