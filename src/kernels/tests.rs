//! Every kernel of every instruction set this processor has, against loops in double precision that are too plain to
//! be wrong, over one table of cases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::{
    Attention, AttentionShape, ByteRows, CacheSlices, Compute, CpuMatrix, CpuMatrixBuilder, Kernels, MatmulInput,
    MatmulJob, QuantizedRows, Rotary, Unary, f16_to_f32, store_f16,
};
use crate::quant::{Codes, KV_BLOCK, KvType, PackedLayout, PackedRows, quantize_kv, unpack_rows};

/// A small generator with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// Uniform in -1..1.
    fn unit(&mut self) -> f32 {
        self.next() as f32 / 2_147_483_648.0 - 1.0
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        // Sums of uniforms: bell-shaped, as activations are.
        (0..n).map(|_| self.unit() + self.unit() + self.unit()).collect()
    }
}

fn half(value: f32) -> u32 {
    u32::from(half::f16::from_f32(value).to_bits())
}

/// A random matrix of any layout; padding columns and rows hold zeros as the packer leaves them.
fn random_matrix(layout: PackedLayout, rows: usize, columns: usize, random: &mut Random) -> PackedRows {
    let mut packed = PackedRows::zeros(layout, rows, columns).unwrap();
    match layout {
        PackedLayout::F32 => packed.low.fill_with(|| random.unit().to_bits()),
        PackedLayout::F16 => packed.low.fill_with(|| half(random.unit()) | half(random.unit()) << 16),
        PackedLayout::Coded { affine, .. } => {
            packed.low.fill_with(|| random.next());
            packed.high.fill_with(|| random.next());
            packed.scales.fill_with(|| {
                let scale = 0.002 + 0.01 * random.unit().abs();
                let other = if affine { -0.03 * random.unit() } else { 0.002 + 0.01 * random.unit().abs() };
                half(scale) | half(other) << 16
            });
        }
    }
    packed
}

fn layouts() -> Vec<PackedLayout> {
    let mut layouts = vec![PackedLayout::F32, PackedLayout::F16];
    for codes in [Codes::B2, Codes::B3, Codes::B4, Codes::B5, Codes::B6, Codes::B8] {
        for group in [16, 32, 64, 128] {
            for affine in [false, true] {
                layouts.push(PackedLayout::Coded { codes, group, affine });
            }
        }
    }
    layouts
}

/// Signed bytes with one scale a row.
fn whole_rows(columns: usize) -> PackedLayout {
    PackedLayout::Coded { codes: Codes::B8, group: columns.next_multiple_of(32), affine: false }
}

/// Rows, columns, activation rows: whole and broken tiles, blocks and groups.
const SIZES: &[(usize, usize, usize)] = &[
    (1, 32, 60),
    (4, 48, 2),
    (5, 576, 1),
    (16, 64, 8),
    (19, 576, 3),
    (36, 1536, 1),
    (30, 96, 13),
    (8, 40, 5),
    (65, 7, 4),
];

fn nmse(expected: &[f64], found: &[f32]) -> f64 {
    let error: f64 = expected.iter().zip(found).map(|(e, f)| (e - f64::from(*f)).powi(2)).sum();
    let norm: f64 = expected.iter().map(|e| e * e).sum();
    if norm == 0.0 { error } else { error / norm }
}

/// `x · w^T` in double precision.
fn reference_matmul(x: &[f32], w: &[f32], columns: usize) -> Vec<f64> {
    let rows = x.chunks_exact(columns);
    rows.flat_map(|x| {
        w.chunks_exact(columns).map(|w| x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum())
    })
    .collect()
}

/// Quantizes `x` in every form that some weights of `columns` columns read.
fn quantize(compute: &Compute, x: &[f32], n: usize, columns: usize) -> QuantizedRows {
    let weights = [(Codes::B6, 16), (Codes::B8, 32)].map(|(codes, group)| {
        let layout = PackedLayout::Coded { codes, group, affine: false };
        CpuMatrix::new(&PackedRows::zeros(layout, 4, columns).unwrap()).unwrap()
    });
    let mut rows = QuantizedRows::default();
    compute.quantize(x, n, &weights.each_ref(), &mut rows).unwrap();
    rows
}

fn multiply(compute: &Compute, weight: &CpuMatrix, x: &[f32], n: usize) -> Vec<f32> {
    let mut quantized = QuantizedRows::default();
    compute.quantize(x, n, &[weight], &mut quantized).unwrap();
    let mut dst = vec![f32::NAN; n * weight.rows()];
    let input = MatmulInput { values: x, quantized: Some(&quantized), rows: n };
    compute.matmul(input, &mut [MatmulJob { weight, dst: &mut dst }]).unwrap();
    dst
}

/// The floats that quantized activations stand for, by the portable kernels.
fn as_quantized(x: &[f32], n: usize, columns: usize) -> Vec<f32> {
    let compute = Compute::with_kernels(Kernels::available().last().unwrap(), 1).unwrap();
    let rows = quantize(&compute, x, n, columns);
    let mut values = Vec::new();
    for n in 0..n {
        for k in 0..columns {
            values.push(rows.value(n, k, false) as f32);
        }
    }
    values
}

#[test]
fn every_layout_multiplies_as_its_unpacked_weights_do() {
    let mut failures = Vec::new();
    let mut cases = 0;
    // Rows with one scale are groups of another size for each number of columns.
    for layout in layouts().into_iter().map(Some).chain([None]) {
        for &(rows, columns, n) in SIZES {
            let layout = layout.unwrap_or_else(|| whole_rows(columns));
            let mut random = Random(rows as u64 * 1000 + columns as u64);
            let packed = random_matrix(layout, rows, columns, &mut random);
            let mut weights = vec![0f32; rows * columns];
            unpack_rows(&packed, &mut weights).unwrap();
            let weight = CpuMatrix::new(&packed).unwrap();
            let mut x = random.floats(n * columns);
            // Some rows have a value that dwarfs the others.
            x.chunks_exact_mut(columns).skip(n / 2).step_by(3).for_each(|row| row[columns / 3] = 300.0);
            let coded = matches!(layout, PackedLayout::Coded { .. });
            let exact = reference_matmul(&x, &weights, columns);
            // With the activations that the kernels see, only float rounding is left.
            let seen = if coded { as_quantized(&x, n, columns) } else { x.clone() };
            let expected = reference_matmul(&seen, &weights, columns);
            for kernels in Kernels::available() {
                let compute = Compute::with_kernels(kernels, 1).unwrap();
                let found = multiply(&compute, &weight, &x, n);
                let (rounding, total) = (nmse(&expected, &found), nmse(&exact, &found));
                if rounding.is_nan() || rounding > 1e-11 || total > 5e-4 {
                    failures.push(format!(
                        "{} {} {rows}x{columns}x{n}: {rounding:e} {total:e}",
                        kernels.name(),
                        layout.name()
                    ));
                }
                cases += 1;
            }
        }
    }
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn whole_rows_of_activations_are_bytes_around_a_zero_point() {
    for &(rows, columns, n) in SIZES {
        let mut random = Random(columns as u64);
        let packed = random_matrix(whole_rows(columns), rows, columns, &mut random);
        let mut weights = vec![0f32; rows * columns];
        unpack_rows(&packed, &mut weights).unwrap();
        // Far from symmetric, with exact zeros.
        let x: Vec<f32> =
            random.floats(n * columns).into_iter().map(|x| if x < -1.0 { 0.0 } else { x + 2.0 }).collect();
        for kernels in Kernels::available() {
            let compute = Compute::with_kernels(kernels, 1).unwrap();
            let mut weight = CpuMatrix::new(&packed).unwrap();
            let mut quantized = QuantizedRows::default();
            compute.quantize_whole(&x, n, &[&weight], &mut quantized).unwrap();
            let mut found = vec![f32::NAN; n * rows];
            let input = MatmulInput { values: &x, quantized: Some(&quantized), rows: n };
            let refused = compute.matmul(input, &mut [MatmulJob { weight: &weight, dst: &mut found }]);
            assert!(refused.is_err(), "products need the row sums");
            weight.set_row_sums(compute.row_sums(&weight).unwrap());
            compute.matmul(input, &mut [MatmulJob { weight: &weight, dst: &mut found }]).unwrap();
            let wide = kernels.activation_bits(weight.layout()) == 16;
            let seen: Vec<f32> =
                (0..n * columns).map(|i| quantized.value(i / columns, i % columns, wide) as f32).collect();
            for (x, seen) in x.chunks_exact(columns).zip(seen.chunks_exact(columns)) {
                let high = x.iter().fold(0f32, |high, x| high.max(*x));
                let step = high / 254.0;
                for (x, seen) in x.iter().zip(seen) {
                    assert!((x - seen).abs() <= 0.501 * step, "{}: {x} became {seen}", kernels.name());
                    assert!(*x != 0.0 || seen.abs() < 1e-5 * step, "zero became {seen}");
                }
            }
            let error = nmse(&reference_matmul(&seen, &weights, columns), &found);
            assert!(error < 1e-9, "{} {rows}x{columns}x{n}: {error:e}", kernels.name());
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_parts_or_neighbours() {
    let layout = PackedLayout::Coded { codes: Codes::B4, group: 32, affine: true };
    for layout in [layout, PackedLayout::F16] {
        let (rows, columns, n) = (1027, 576, 9);
        let mut random = Random(7);
        let packed = random_matrix(layout, rows, columns, &mut random);
        let weight = CpuMatrix::new(&packed).unwrap();
        let x = random.floats(n * columns);
        for kernels in Kernels::available() {
            let one = multiply(&Compute::with_kernels(kernels, 1).unwrap(), &weight, &x, n);
            for threads in [2, 3] {
                let many = multiply(&Compute::with_kernels(kernels, threads).unwrap(), &weight, &x, n);
                assert!(one == many, "{} on {threads} threads", kernels.name());
            }
            let compute = Compute::with_kernels(kernels, 1).unwrap();
            for (x, expected) in x.chunks_exact(columns).zip(one.chunks_exact(rows)) {
                let alone = multiply(&compute, &weight, x, 1);
                assert!(alone == expected, "{}: a row alone differs", kernels.name());
            }
        }
    }
}

#[test]
fn several_weights_in_one_region_give_what_each_gives_alone() {
    let mut random = Random(3);
    let layouts = [
        PackedLayout::Coded { codes: Codes::B4, group: 32, affine: false },
        PackedLayout::Coded { codes: Codes::B8, group: 32, affine: false },
        PackedLayout::F32,
    ];
    let weights = layouts.map(|layout| CpuMatrix::new(&random_matrix(layout, 70, 96, &mut random)).unwrap());
    let x = random.floats(2 * 96);
    let compute = Compute::new(2).unwrap();
    let mut quantized = QuantizedRows::default();
    compute.quantize(&x, 2, &weights.each_ref(), &mut quantized).unwrap();
    let mut results = [vec![0f32; 140], vec![0f32; 140], vec![0f32; 140]];
    let mut jobs: Vec<_> =
        weights.iter().zip(&mut results).map(|(weight, dst)| MatmulJob { weight, dst: dst.as_mut_slice() }).collect();
    compute.matmul(MatmulInput { values: &x, quantized: Some(&quantized), rows: 2 }, &mut jobs).unwrap();
    for (weight, result) in weights.iter().zip(&results) {
        assert!(*result == multiply(&compute, weight, &x, 2));
    }
}

#[test]
fn extreme_codes_multiply_exactly() {
    // The largest codes against the largest activations: what saturates, saturates here. -128 is the code that a
    // file may hold although no quantizer writes it.
    for codes in [Codes::B2, Codes::B3, Codes::B4, Codes::B5, Codes::B6, Codes::B8] {
        for (low, sign) in [(0xFFFF_FFFFu32, 1.0f32), (0x8080_8080, 1.0), (0x8080_8080, -1.0), (0x7F7F_7F7F, -1.0)] {
            let layout = PackedLayout::Coded { codes, group: 128, affine: false };
            let mut packed = PackedRows::zeros(layout, 4, 128).unwrap();
            packed.low.fill(low);
            packed.high.fill(0xFFFF_FFFF);
            packed.scales.fill(half(1.0) | half(1.0) << 16);
            let mut weights = vec![0f32; 4 * 128];
            unpack_rows(&packed, &mut weights).unwrap();
            let x = vec![127.0 * sign; 128];
            let expected = reference_matmul(&x, &weights, 128);
            let weight = CpuMatrix::new(&packed).unwrap();
            for kernels in Kernels::available() {
                let found = multiply(&Compute::with_kernels(kernels, 1).unwrap(), &weight, &x, 1);
                for (expected, found) in expected.iter().zip(found) {
                    assert_eq!(*expected, f64::from(found), "{} {codes:?} {low:#x} {sign}", kernels.name());
                }
            }
        }
    }
}

#[test]
fn values_that_dwarf_the_others_cost_them_no_precision() {
    let mut x = Random(13).floats(3 * 1536);
    (x[1536 + 5], x[3 * 1536 - 1]) = (1000.0, -3000.0);
    let seen = as_quantized(&x, 3, 1536);
    for (index, (x, seen)) in x.iter().zip(seen).enumerate() {
        // The steps of a block without them are at most 3 / 127 wide.
        assert!((x - seen).abs() < 0.013, "value {index}: {x} became {seen}");
    }
}

#[test]
fn quantized_rows_are_equal_in_every_instruction_set() {
    let mut random = Random(11);
    let mut x = random.floats(3 * 100);
    x[40] = 1e30;
    x[130] = -1e-42;
    let mut first: Option<QuantizedRows> = None;
    for kernels in Kernels::available() {
        let rows = quantize(&Compute::with_kernels(kernels, 1).unwrap(), &x, 3, 100);
        let first = first.get_or_insert_with(QuantizedRows::default);
        if first.rows == 0 {
            *first = rows;
        } else {
            assert_eq!((&first.narrow, &first.wide, &first.rests), (&rows.narrow, &rows.wide, &rows.rests));
        }
    }
}

#[test]
fn rows_are_quantized_the_same_on_every_number_of_threads() {
    let x = Random(12).floats(500 * 100);
    let quantized = |threads| {
        let rows = quantize(&Compute::new(threads).unwrap(), &x, 500, 100);
        (rows.narrow, rows.wide)
    };
    assert!(quantized(1) == quantized(3));
}

#[test]
fn rows_of_every_layout_read_back() {
    for layout in layouts() {
        for (rows, columns) in [(5, 576), (6, 48), (4, 7)] {
            let packed = random_matrix(layout, rows, columns, &mut Random(5));
            let mut expected = vec![0f32; rows * columns];
            unpack_rows(&packed, &mut expected).unwrap();
            let matrix = CpuMatrix::new(&packed).unwrap();
            for (row, expected) in expected.chunks_exact(columns).enumerate() {
                let mut found = vec![0f32; columns];
                matrix.row(row, &mut found).unwrap();
                assert_eq!(found, expected, "{} row {row}", layout.name());
            }
            assert!(matrix.row(rows, &mut vec![0f32; columns]).is_err());
        }
    }
}

#[test]
fn parts_make_the_same_matrix_as_the_whole() {
    let layout = PackedLayout::Coded { codes: Codes::B5, group: 32, affine: true };
    let mut random = Random(9);
    let parts = [8, 4, 3].map(|rows| random_matrix(layout, rows, 64, &mut random));
    let mut builder = CpuMatrixBuilder::new(layout, 15, 64).unwrap();
    assert!(CpuMatrixBuilder::new(layout, 15, 64).unwrap().finish().is_err());
    for part in &parts {
        builder.push(part).unwrap();
    }
    assert!(builder.push(&parts[0]).is_err(), "more rows than were announced");
    let matrix = builder.finish().unwrap();
    let mut expected = Vec::new();
    for part in &parts {
        let mut rows = vec![0f32; part.rows * 64];
        unpack_rows(part, &mut rows).unwrap();
        expected.extend(rows);
    }
    for (row, expected) in expected.chunks_exact(64).enumerate() {
        let mut found = vec![0f32; 64];
        matrix.row(row, &mut found).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn unsound_matrices_and_lengths_are_refused() {
    let layout = PackedLayout::Coded { codes: Codes::B4, group: 32, affine: false };
    let mut packed = PackedRows::zeros(layout, 8, 64).unwrap();
    let weight = CpuMatrix::new(&packed).unwrap();
    packed.scales.pop();
    assert!(CpuMatrix::new(&packed).is_err());
    let odd = PackedLayout::Coded { codes: Codes::B4, group: 48, affine: false };
    assert!(CpuMatrixBuilder::new(odd, 8, 96).is_err());
    assert!(CpuMatrixBuilder::new(layout, usize::MAX / 2, 64).is_err());
    let compute = Compute::new(1).unwrap();
    let x = vec![0f32; 64];
    let mut short = vec![0f32; 7];
    let input = MatmulInput { values: &x, quantized: None, rows: 1 };
    assert!(compute.matmul(input, &mut [MatmulJob { weight: &weight, dst: &mut short }]).is_err());
    let mut dst = vec![0f32; 8];
    assert!(
        compute.matmul(input, &mut [MatmulJob { weight: &weight, dst: &mut dst }]).is_err(),
        "no quantized activations"
    );
    let mut others = QuantizedRows::default();
    compute.quantize(&x, 1, &[], &mut others).unwrap_err();
    assert!(compute.quantize(&x, 2, &[&weight], &mut others).is_err());
    let dense = CpuMatrix::new(&PackedRows::zeros(PackedLayout::F32, 8, 64).unwrap()).unwrap();
    compute.quantize(&x, 1, &[&dense], &mut others).unwrap();
    let input = MatmulInput { values: &x, quantized: Some(&others), rows: 1 };
    assert!(
        compute.matmul(input, &mut [MatmulJob { weight: &weight, dst: &mut dst }]).is_err(),
        "none for that weight"
    );
    assert!(compute.rms_norm(&x, &x[..10], 1e-5, &mut vec![0f32; 64]).is_err());
    assert!(compute.add(&mut short, &x).is_err());
    assert!(compute.mul(&mut short, &x).is_err());
}

/// Attention by its definition, in double precision.
fn reference_attention(q: &[f32], k: &[f32], v: &[f32], s: &AttentionShape) -> Vec<f64> {
    let mut out = vec![0f64; q.len()];
    for token in 0..s.seq_len {
        for head in 0..s.n_heads {
            let at = (token * s.n_heads + head) * s.head_dim;
            let cache = head / (s.n_heads / s.n_kv_heads) * s.capacity * s.head_dim;
            let position = s.position + token;
            let sees =
                |key: usize| (!s.causal || key <= position) && s.window.is_none_or(|window| key + window > position);
            let keys: Vec<usize> = (0..s.n_keys).filter(|&key| sees(key)).collect();
            let scores: Vec<f64> = keys
                .iter()
                .map(|key| {
                    let k = &k[cache + key * s.head_dim..][..s.head_dim];
                    let q = &q[at..at + s.head_dim];
                    let score =
                        q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum::<f64>() * f64::from(s.scale);
                    s.soft_cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
                })
                .collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (key, weight) in keys.iter().zip(&weights) {
                for d in 0..s.head_dim {
                    out[at + d] += weight / total * f64::from(v[cache + key * s.head_dim + d]);
                }
            }
        }
    }
    out
}

fn attention_cases() -> Vec<AttentionShape> {
    let base = AttentionShape {
        n_heads: 9,
        n_kv_heads: 3,
        head_dim: 64,
        seq_len: 1,
        position: 0,
        capacity: 300,
        n_keys: 1,
        causal: true,
        window: None,
        scale: 0.125,
        soft_cap: None,
    };
    vec![
        base,
        AttentionShape { position: 199, n_keys: 200, ..base },
        AttentionShape { position: 290, n_keys: 291, window: Some(150), ..base },
        AttentionShape { seq_len: 130, n_keys: 130, ..base },
        AttentionShape { seq_len: 7, position: 61, n_keys: 68, ..base },
        AttentionShape { seq_len: 5, position: 190, n_keys: 195, window: Some(70), ..base },
        AttentionShape { seq_len: 40, position: 100, n_keys: 140, window: Some(1), soft_cap: Some(5.0), ..base },
        AttentionShape { n_heads: 4, n_kv_heads: 1, head_dim: 256, seq_len: 3, position: 64, n_keys: 67, ..base },
        AttentionShape { n_heads: 2, n_kv_heads: 2, head_dim: 37, seq_len: 70, n_keys: 70, scale: 2.0, ..base },
        AttentionShape { n_heads: 12, n_kv_heads: 12, head_dim: 32, seq_len: 11, n_keys: 11, causal: false, ..base },
        AttentionShape { n_keys: 0, ..base },
    ]
}

/// Heads as bytes, and what they stand for.
struct Bytes {
    codes: Vec<i8>,
    tops: Vec<f32>,
    values: Vec<f32>,
}

impl Bytes {
    fn of(plane: &[f32], head_dim: usize) -> Self {
        let blocks = head_dim.div_ceil(KV_BLOCK);
        let rows = plane.len() / head_dim;
        let (mut codes, mut tops) = (vec![0; plane.len()], vec![0.0; rows * blocks]);
        let mut values = plane.to_vec();
        let to = codes.chunks_mut(head_dim).zip(tops.chunks_mut(blocks));
        for (head, (codes, tops)) in values.chunks_mut(head_dim).zip(to) {
            quantize_kv(head, codes, tops);
            KvType::Q8.round(head);
        }
        Self { codes, tops, values }
    }

    fn rows(&self) -> ByteRows<'_> {
        ByteRows { codes: &self.codes, tops: &self.tops }
    }
}

#[test]
fn attention_matches_its_definition_for_every_cache() {
    for (index, shape) in attention_cases().into_iter().enumerate() {
        let mut random = Random(index as u64);
        let q = random.floats(shape.seq_len * shape.n_heads * shape.head_dim);
        let len = shape.n_kv_heads * shape.capacity * shape.head_dim;
        let (k, v) = (random.floats(len), random.floats(len));
        let (mut k16, mut v16) = (vec![0u16; len], vec![0u16; len]);
        store_f16(&k, &mut k16);
        store_f16(&v, &mut v16);
        let rounded = |half: &[u16]| half.iter().map(|&bits| f16_to_f32(bits)).collect::<Vec<_>>();
        let (k8, v8) = (Bytes::of(&k, shape.head_dim), Bytes::of(&v, shape.head_dim));
        let bytes = reference_attention(&q, &k8.values, &v8.values, &shape);
        let exact = reference_attention(&q, &k, &v, &shape);
        let halves = reference_attention(&q, &rounded(&k16), &rounded(&v16), &shape);
        for kernels in Kernels::available() {
            for threads in [1, 2] {
                let compute = Compute::with_kernels(kernels, threads).unwrap();
                let caches = [
                    (CacheSlices::F32 { k: &k, v: &v }, &exact),
                    (CacheSlices::F16 { k: &k16, v: &v16 }, &halves),
                    (CacheSlices::Q8 { k: k8.rows(), v: v8.rows() }, &bytes),
                ];
                for (cache, expected) in caches {
                    let mut found = vec![f32::NAN; q.len()];
                    compute.attention(&Attention { q: &q, cache, shape }, &mut Vec::new(), &mut found).unwrap();
                    let error = nmse(expected, &found);
                    assert!(error < 1e-11, "{} case {index}: {error:e}", kernels.name());
                }
            }
        }
    }
}

#[test]
fn a_prefilled_row_attends_exactly_as_a_decoded_one() {
    let base = AttentionShape { seq_len: 300, n_keys: 300, capacity: 300, ..attention_cases()[0] };
    let width = base.n_heads * base.head_dim;
    let mut random = Random(1);
    let mut q = random.floats(base.seq_len * width);
    // What is no number has to show.
    q[291 * width] = f32::NAN;
    let len = base.n_kv_heads * base.capacity * base.head_dim;
    let (k, v) = (random.floats(len), random.floats(len));
    let cache = CacheSlices::F32 { k: &k, v: &v };
    let compute = Compute::new(1).unwrap();
    let attend = |q: &[f32], shape| {
        let mut dst = vec![0f32; q.len()];
        compute.attention(&Attention { q, cache, shape }, &mut Vec::new(), &mut dst).unwrap();
        dst
    };
    for all in [base, AttentionShape { window: Some(150), ..base }, AttentionShape { window: Some(36), ..base }] {
        let together = attend(&q, all);
        for position in [0, 1, 63, 64, 127, 128, 129, 256, 290, 291, 292, 299] {
            let shape = AttentionShape { seq_len: 1, position, n_keys: position + 1, ..all };
            let row = position * width..(position + 1) * width;
            let alone = attend(&q[row.clone()], shape);
            let are_equal = alone.iter().zip(&together[row]).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
            assert!(are_equal, "position {position} of {all:?}");
            assert_eq!(alone.iter().any(|value| value.is_nan()), position == 291, "position {position} of {all:?}");
        }
    }
}

#[test]
fn attention_of_a_wrong_shape_is_refused() {
    let shape = attention_cases()[0];
    let compute = Compute::new(1).unwrap();
    let (q, cache) = (vec![0f32; 576], vec![0f32; 3 * 300 * 64]);
    let slices = CacheSlices::F32 { k: &cache, v: &cache };
    let mut dst = vec![0f32; 576];
    for wrong in [
        AttentionShape { n_kv_heads: 2, ..shape },
        AttentionShape { n_kv_heads: 0, ..shape },
        AttentionShape { n_keys: 301, ..shape },
        AttentionShape { capacity: 299, ..shape },
        AttentionShape { seq_len: 2, ..shape },
        AttentionShape { window: Some(0), ..shape },
    ] {
        assert!(
            compute.attention(&Attention { q: &q, cache: slices, shape: wrong }, &mut Vec::new(), &mut dst).is_err(),
            "{wrong:?}"
        );
    }
}

#[test]
fn norms_match_their_definitions() {
    let mut random = Random(21);
    let (n, columns) = (40, 577);
    let x = random.floats(n * columns);
    let (weight, bias) = (random.floats(columns), random.floats(columns));
    let mut rms = Vec::new();
    let mut layer = Vec::new();
    let mut soft = Vec::new();
    for x in x.chunks_exact(columns) {
        let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / columns as f64;
        let square = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / columns as f64;
        let total: f64 = x.iter().map(|x| f64::from(*x).exp()).sum();
        for (i, x) in x.iter().map(|x| f64::from(*x)).enumerate() {
            rms.push(x / (square + 1e-5).sqrt() * f64::from(weight[i]));
            let scaled = (x - mean) / (square - mean * mean + 1e-5).sqrt();
            layer.push(scaled * f64::from(weight[i]) + f64::from(bias[i]));
            soft.push(x.exp() / total);
        }
    }
    for kernels in Kernels::available() {
        let compute = Compute::with_kernels(kernels, 2).unwrap();
        let mut found = vec![0f32; x.len()];
        compute.rms_norm(&x, &weight, 1e-5, &mut found).unwrap();
        assert!(nmse(&rms, &found) < 1e-12, "{} rms_norm", kernels.name());
        compute.layer_norm(&x, &weight, Some(&bias), 1e-5, &mut found).unwrap();
        assert!(nmse(&layer, &found) < 1e-12, "{} layer_norm", kernels.name());
        compute.softmax(&x, columns, &mut found).unwrap();
        assert!(nmse(&soft, &found) < 1e-12, "{} softmax", kernels.name());
    }
}

#[test]
fn rotation_and_gating_match_their_definitions() {
    let mut random = Random(22);
    let (rows, n_heads, head_dim, n_pairs) = (3, 2, 20, 8);
    let width = n_heads * head_dim;
    let x = random.floats(rows * width);
    let angles = random.floats(rows * n_pairs);
    let turns: Vec<f32> = angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect();
    for kernels in Kernels::available() {
        let compute = Compute::with_kernels(kernels, 1).unwrap();
        for interleaved in [false, true] {
            let mut found = x.clone();
            compute.rotate(&mut found, width, &Rotary { turns: &turns, n_pairs, head_dim, interleaved }).unwrap();
            let mut expected: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            for row in 0..rows {
                for head in 0..n_heads {
                    for i in 0..n_pairs {
                        let (a, b) = if interleaved { (2 * i, 2 * i + 1) } else { (i, i + n_pairs) };
                        let at = row * width + head * head_dim;
                        let angle = f64::from(angles[row * n_pairs + i]);
                        let (u, v) = (f64::from(x[at + a]), f64::from(x[at + b]));
                        expected[at + a] = u * angle.cos() - v * angle.sin();
                        expected[at + b] = u * angle.sin() + v * angle.cos();
                    }
                }
            }
            assert!(nmse(&expected, &found) < 1e-12, "{} {interleaved}", kernels.name());
        }
        let (gate, up) = (random.floats(50_000), random.floats(50_000));
        let mut found = gate.clone();
        compute.gate(Unary::Silu, &mut found, &up).unwrap();
        let silu = |x: f32| f64::from(x) / (1.0 + (-f64::from(x)).exp());
        let expected: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| silu(*g) * f64::from(*u)).collect();
        assert!(nmse(&expected, &found) < 1e-12, "{} gate", kernels.name());
    }
}
