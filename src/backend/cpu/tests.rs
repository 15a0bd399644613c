//! The CPU backend against the reference backend on a small decoder that uses every operator, as the models emit it
//! and as the optimizer leaves it.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::backend::samples::{CAPACITY, Case, HIDDEN, decoder, load, logits, nmse, prompt};
use crate::backend::{BACKENDS, KvType, LoadRequest, OpenOptions};
use crate::graph::{CacheSpec, ReferenceCache};
use crate::kernels::{Compute, CpuCx, CpuInput, CpuMatrix, Kernels, KvCache, Scratch};
use crate::ops::Pairs;
use crate::ops::cases::{self, CaseInput};
use crate::optimize::optimize;
use crate::quant::{PackedLayout, block_format_by_name};
use crate::quantize::Activations;
use crate::tensor::{DType, Tensor};
use futures::executor::block_on;
use std::sync::Arc;

#[test]
fn every_format_gives_the_reference_logits() {
    for (pairs, window) in [(Pairs::Halves, None), (Pairs::Interleaved, Some(20))] {
        for optimized in [false, true] {
            let mut graph = decoder(pairs, window);
            if optimized {
                optimize(&mut graph).unwrap();
            }
            let cases = [
                ("f32", KvType::F32, 1e-9),
                ("f32", KvType::F16, 1e-5),
                ("f16", KvType::F32, 1e-9),
                ("q4_0", KvType::F16, 5e-4),
                ("q5_0", KvType::F16, 5e-4),
                ("q8_0", KvType::F32, 5e-4),
                ("f32", KvType::Q8, 1e-5),
            ];
            for (format, kv_type, tolerance) in cases {
                let case = Case { graph: graph.clone(), format, kv_type };
                let expected = logits(&mut *load("reference", &case, 1));
                let found = logits(&mut *load("cpu", &case, 1));
                let error = nmse(&expected, &found);
                assert!(error < tolerance, "{format} {kv_type:?} optimized {optimized}: {error:e}");
                assert!(found == logits(&mut *load("cpu", &case, 3)), "{format}: threads change the logits");
            }
        }
    }
}

#[test]
fn a_prompt_in_parts_gives_the_logits_of_the_whole() {
    let mut graph = decoder(Pairs::Halves, None);
    optimize(&mut graph).unwrap();
    let case = Case { graph, format: "q4_0", kv_type: KvType::F16 };
    let prompt = prompt();
    let mut model = load("cpu", &case, 1);
    block_on(model.forward(&prompt, 0)).unwrap();
    let whole = block_on(model.logits()).unwrap();
    for (index, token) in prompt.iter().enumerate() {
        block_on(model.forward(&[*token], index)).unwrap();
    }
    assert!(whole == block_on(model.logits()).unwrap());
}

#[test]
fn misuse_is_an_error_and_the_model_lives_on() {
    let case = Case { graph: decoder(Pairs::Halves, None), format: "q4_0", kv_type: KvType::F32 };
    let mut model = load("cpu", &case, 1);
    let expected = logits(&mut *model);
    assert_eq!(block_on(model.forward(&[], 0)).unwrap_err().code(), "context-overflow");
    assert_eq!(block_on(model.forward(&[1], CAPACITY)).unwrap_err().code(), "context-overflow");
    assert_eq!(block_on(model.forward(&[1], usize::MAX)).unwrap_err().code(), "context-overflow");
    block_on(model.forward(&[u32::MAX], 0)).unwrap();
    let format = block_format_by_name("f32").unwrap();
    assert!(model.write_weight(0, 0, format, &[0; 4]).is_err());
    assert!(model.write_weight(999, 0, format, &[0; 4]).is_err());
    assert!(expected == logits(&mut *model));
    let memory = model.memory();
    assert!(memory.weights_bytes > 0 && memory.kv_bytes == 2 * 2 * 16 * CAPACITY as u64 * 4);
    assert!(model.report().self_test.iter().all(|test| test.error.is_none()));
}

#[test]
fn a_profile_counts_every_operation_and_the_bytes_it_reads() {
    let mut graph = decoder(Pairs::Halves, None);
    optimize(&mut graph).unwrap();
    let mut model = load("cpu", &Case { graph, format: "q8_0", kv_type: KvType::F32 }, 1);
    assert!(block_on(model.profile(true)).unwrap().is_empty());
    block_on(model.forward(&[1, 2], 0)).unwrap();
    block_on(model.forward(&[3], 2)).unwrap();
    let times = block_on(model.profile(false)).unwrap();
    let of = |op: &str| times.iter().find(|time| time.kernel == op).map(|time| (time.calls, time.bytes)).unwrap();
    assert_eq!(of("embed"), (2, 3 * HIDDEN as u64 * 4));
    // Keys and values of 2 heads of 16 floats, for 2 and then 3 tokens, and the two head norms.
    assert_eq!(of("attention"), (2, 5 * 2 * 2 * 16 * 4 + 2 * 2 * 16 * 4));
    assert!(of("linear").1 > 0);
    block_on(model.forward(&[3], 3)).unwrap();
    assert!(block_on(model.profile(false)).unwrap().is_empty());
}

#[test]
fn a_weight_that_is_missing_or_cut_is_an_error() {
    let case = Case { graph: decoder(Pairs::Halves, None), format: "f32", kv_type: KvType::F32 };
    let row = BACKENDS.iter().find(|row| row.name == "cpu").unwrap();
    let layouts = vec![PackedLayout::F32; case.graph.weights.len()];
    let request = LoadRequest {
        graph: Arc::new(case.graph),
        layouts,
        capacity: CAPACITY,
        kv_type: KvType::F32,
        activations: Activations::Blocks,
    };
    let mut model = block_on((row.open)(OpenOptions { threads: Some(1), ..OpenOptions::default() }, request)).unwrap();
    let format = block_format_by_name("f32").unwrap();
    assert!(model.write_weight(0, 0, format, &[0; HIDDEN * 4 - 1]).is_err());
    assert!(model.write_weight(0, 4, format, &[0; HIDDEN * 4]).is_err(), "row 4 before row 0");
    assert!(block_on(model.finish()).is_err(), "no weight was written");
}

/// The outputs of a shared case by the operation's CPU kernels.
fn case_outputs(compute: &Compute, case: &cases::Case, expected: &[Tensor]) -> Vec<Vec<f32>> {
    let matrices: Vec<Option<CpuMatrix>> = case
        .inputs
        .iter()
        .map(|input| if let CaseInput::Matrix(rows) = input { Some(CpuMatrix::new(rows).unwrap()) } else { None })
        .collect();
    let inputs: Vec<CpuInput<'_>> = case
        .inputs
        .iter()
        .zip(&matrices)
        .map(|(input, matrix)| match (input, matrix) {
            (CaseInput::Vector(values), _) => CpuInput::F32(values),
            (CaseInput::Tensor(tensor), _) if tensor.dtype() == DType::U32 => CpuInput::U32(tensor.as_u32().unwrap()),
            (CaseInput::Tensor(tensor), _) => CpuInput::F32(tensor.as_f32().unwrap()),
            (CaseInput::Matrix(_), matrix) => CpuInput::Matrix(matrix.as_ref().unwrap()),
        })
        .collect();
    let shape = |input: &CaseInput| match input {
        CaseInput::Tensor(tensor) => tensor.shape().to_vec(),
        CaseInput::Matrix(rows) => vec![rows.rows, rows.columns],
        CaseInput::Vector(values) => vec![values.len()],
    };
    let shapes: Vec<Vec<usize>> = case.inputs.iter().map(shape).collect();
    let mut cache = case.cache.as_ref().map(|(spec, before)| filled_cache(spec, before, case.position));
    let mut found: Vec<Vec<f32>> = expected.iter().map(|x| vec![f32::NAN; x.shape().iter().product()]).collect();
    let mut outputs: Vec<&mut [f32]> = found.iter_mut().map(Vec::as_mut_slice).collect();
    let mut cx = CpuCx {
        compute,
        position: case.position,
        tokens: case.tokens,
        rows: case.rows,
        inputs: &inputs,
        shapes: &shapes,
        outputs: &mut outputs,
        cache: cache.as_mut(),
        scratch: &mut Scratch::default(),
    };
    case.op.cpu(&mut cx).unwrap();
    found
}

/// A cache with the rows before `position` of the reference's.
fn filled_cache(spec: &CacheSpec, before: &ReferenceCache, position: usize) -> KvCache {
    let mut cache = KvCache::new(spec.n_kv_heads, spec.head_dim, before.capacity, KvType::F32).unwrap();
    let rows = |plane: &[f32]| -> Vec<f32> {
        let places = (0..position).flat_map(|token| (0..spec.n_kv_heads).map(move |head| (token, head)));
        let start = |(token, head)| (head * before.capacity + token) * spec.head_dim;
        places.flat_map(|place| plane[start(place)..][..spec.head_dim].to_vec()).collect()
    };
    cache.write(0, &rows(&before.keys), &rows(&before.values)).unwrap();
    cache
}

#[test]
fn every_shared_case_agrees_with_its_reference_in_every_instruction_set() {
    let cases = cases::cases().unwrap();
    let mut failures = Vec::new();
    for kernels in Kernels::available() {
        let compute = Compute::with_kernels(kernels, 1).unwrap();
        for case in &cases {
            let expected = case.reference().unwrap();
            let coded = |input: &CaseInput| matches!(input, CaseInput::Matrix(rows) if matches!(rows.layout, PackedLayout::Coded { .. }));
            let int8 = case.op.name() == "linear" && case.inputs.iter().any(coded);
            let tolerance = if int8 { 5e-4 } else { 1e-9 };
            for (expected, found) in expected.iter().zip(case_outputs(&compute, case, &expected)) {
                let error = cases::nmse(&found, expected.as_f32().unwrap());
                if error > tolerance {
                    failures.push(format!("{} {}: {error:e}", kernels.name(), case.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}
