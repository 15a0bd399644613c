//! The CPU backend against the reference backend on a small decoder that uses every operator, as the models emit it
//! and as the optimizer leaves it.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::backend::{BACKENDS, Executable, KvType, LoadRequest, OpenOptions};
use crate::graph::{CacheSpec, Graph, GraphBuilder, ReferenceCache, ValueId};
use crate::kernels::{Compute, CpuCx, CpuInput, CpuMatrix, Kernels, KvCache, Scratch};
use crate::ops::cases::{self, CaseInput};
use crate::ops::{Add, Attention, Embed, Linear, Mul, Pairs, RmsNorm, Rope, RopeScaling, RopeTable, Silu, TakeRows};
use crate::optimize::optimize;
use crate::quant::{BlockFormat, PackedLayout, block_format_by_name};
use crate::quantize::Activations;
use crate::tensor::{DType, Tensor};
use futures::executor::block_on;
use std::sync::Arc;

const HIDDEN: usize = 64;
const VOCAB: usize = 37;
const CAPACITY: usize = 80;

fn linear(graph: &mut GraphBuilder, name: &str, x: ValueId, rows: usize, columns: usize) -> ValueId {
    let inputs = [x, graph.matrix(name, rows, columns), graph.vector(&format!("{name}.bias"), rows)];
    graph.op(name, Linear { bias: true, ..Linear::PLAIN }, &inputs).unwrap()
}

fn norm(graph: &mut GraphBuilder, name: &str, x: ValueId, len: usize) -> ValueId {
    let weight = graph.vector(name, len);
    graph.op(name, RmsNorm { eps: 1e-5 }, &[x, weight]).unwrap()
}

/// One layer of a decoder with head norms, biases and a window, and its head.
pub fn decoder(pairs: Pairs, window: Option<usize>) -> Graph {
    let mut graph = GraphBuilder::default();
    let tokens = graph.tokens();
    let table = graph.matrix("embd", VOCAB, HIDDEN);
    let turns = RopeTable { base: 1e4, rotary_dim: 16, scaling: RopeScaling::None, factors: None };
    let turns = graph.constant("rope", turns.build(CAPACITY).unwrap());
    let x = graph.op("embd", Embed, &[tokens, table]).unwrap();
    let h = norm(&mut graph, "norm", x, HIDDEN);
    let mut heads = Vec::new();
    for (name, rows) in [("q", 96), ("k", 32), ("v", 32)] {
        let mut head = linear(&mut graph, name, h, rows, HIDDEN);
        if name != "v" {
            head = norm(&mut graph, &format!("{name}_norm"), head, 16);
            head = graph.op("rope", Rope { head_dim: 16, pairs }, &[head, turns]).unwrap();
        }
        heads.push(head);
    }
    let cache = graph.cache(CacheSpec { n_kv_heads: 2, head_dim: 16 });
    let attention =
        Attention { cache, n_heads: 6, n_kv_heads: 2, head_dim: 16, scale: 0.25, window, norm: None, rotary: None };
    let a = graph.op("attn", attention, &heads).unwrap();
    let o = linear(&mut graph, "o", a, HIDDEN, 96);
    let x = graph.op("residual", Add, &[x, o]).unwrap();
    let h = norm(&mut graph, "ffn_norm", x, HIDDEN);
    let (gate, up) = (linear(&mut graph, "gate", h, 96, HIDDEN), linear(&mut graph, "up", h, 96, HIDDEN));
    let gate = graph.op("silu", Silu, &[gate]).unwrap();
    let m = graph.op("mul", Mul, &[gate, up]).unwrap();
    let d = linear(&mut graph, "down", m, HIDDEN, 96);
    let x = graph.op("residual2", Add, &[d, x]).unwrap();
    let rows = graph.op("rows", TakeRows, &[x]).unwrap();
    let logits = graph.op("head", Linear::PLAIN, &[rows, table]).unwrap();
    graph.finish(&[logits])
}

/// The bytes of a weight in a format: arbitrary codes, moderate scales.
fn bytes_of(name: &str, format: &BlockFormat, len: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let unit = |bits: u32| bits as f32 / (1 << 24) as f32 - 0.4;
    match format.name {
        "f32" => (0..len).flat_map(|_| unit(next()).to_le_bytes()).collect(),
        "f16" => (0..len).flat_map(|_| half::f16::from_f32(0.3 * unit(next())).to_le_bytes()).collect(),
        _ => {
            // A block that begins with an f16 scale.
            let block = |next: &mut dyn FnMut() -> u32| {
                let mut block: Vec<u8> = (0..format.block_bytes).map(|_| next() as u8).collect();
                block[..2].copy_from_slice(&half::f16::from_f32(0.01 + 0.01 * unit(next()).abs()).to_le_bytes());
                block
            };
            (0..len / format.block_len).flat_map(|_| block(&mut next)).collect()
        }
    }
}

pub struct Case {
    pub graph: Graph,
    pub format: &'static str,
    pub kv_type: KvType,
}

/// A loaded decoder whose matrices are in the case's format.
pub fn load(backend: &str, case: &Case, threads: usize) -> Box<dyn Executable> {
    let (f32_format, format) = (block_format_by_name("f32").unwrap(), block_format_by_name(case.format).unwrap());
    let weights = case.graph.weights.clone();
    let layouts = weights.iter().map(|weight| if weight.vector { PackedLayout::F32 } else { format.layout }).collect();
    let request = LoadRequest {
        graph: Arc::new(case.graph.clone()),
        layouts,
        capacity: CAPACITY,
        kv_type: case.kv_type,
        activations: Activations::Blocks,
    };
    let row = BACKENDS.iter().find(|row| row.name == backend).unwrap();
    let options = OpenOptions { threads: Some(threads), allow_fallback_adapter: true, ..OpenOptions::default() };
    let mut model = block_on((row.open)(options, request)).unwrap();
    for (index, weight) in weights.iter().enumerate() {
        let format = if weight.vector { f32_format } else { format };
        let bytes = bytes_of(&weight.name, format, weight.rows * weight.columns);
        // In two parts, where there are rows enough.
        let first = if weight.rows > 8 { 8 } else { 0 };
        let cut = first * weight.columns / format.block_len * format.block_bytes;
        if first > 0 {
            model.write_weight(index, 0, format, &bytes[..cut]).unwrap();
        }
        model.write_weight(index, first, format, &bytes[cut..]).unwrap();
    }
    block_on(model.finish()).unwrap();
    model
}

fn prompt() -> Vec<u32> {
    (0..70).map(|i| (i * 7 + i / 5) % VOCAB as u32).collect()
}

/// Logits of a prompt in two parts, then of a token.
fn logits(model: &mut dyn Executable) -> Vec<f32> {
    let prompt = prompt();
    block_on(model.forward(&prompt[..33], 0)).unwrap();
    let mut logits = block_on(model.logits()).unwrap();
    logits.extend(block_on(model.score(&prompt[33..], 33)).unwrap());
    block_on(model.forward(&[3], 70)).unwrap();
    logits.extend(block_on(model.logits()).unwrap());
    logits
}

fn nmse(expected: &[f32], found: &[f32]) -> f64 {
    assert_eq!(expected.len(), found.len());
    let error: f64 = expected.iter().zip(found).map(|(e, f)| (f64::from(*e) - f64::from(*f)).powi(2)).sum();
    error / expected.iter().map(|e| f64::from(*e).powi(2)).sum::<f64>()
}

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
    let mut cache = KvCache::new(spec.n_kv_heads, spec.head_dim, before.capacity, false).unwrap();
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
