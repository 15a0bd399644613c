//! Runs one operation on given inputs as a model would, for the self-test and the tests.

use super::device::Gpu;
use super::program::{Draft, Pool, Program, Shared, Target};
use super::sample;
use super::state::State;
use crate::backend::{KvType, LoadRequest, SelfTest};
use crate::error::{Error, Result};
use crate::graph::{Dims, Graph};
use crate::ops::cases::{Case, CaseInput, nmse, small_cases};
use crate::plan::Plan;
use crate::quant::{KV_BLOCK, PackedLayout, quantize_kv};
use crate::quantize::Activations;
use crate::shader::{Caps, Kernel, Launch};
use std::sync::Arc;

/// The kernels that a case ran and the largest relative error of its outputs against the reference.
pub struct Outcome {
    pub kernels: Vec<String>,
    pub nmse: f64,
}

/// Runs a case and compares.
pub async fn check(gpu: &mut Gpu, case: &Case, kv_type: KvType) -> Result<Outcome> {
    let caps = gpu.caps;
    gpu.caps = case.caps(caps);
    let outcome = run(gpu, case, kv_type).await;
    gpu.caps = caps;
    outcome
}

async fn run(gpu: &mut Gpu, case: &Case, kv_type: KvType) -> Result<Outcome> {
    let case = &case.with_kv_type(kv_type);
    let parts = case.graph()?;
    let graph = Arc::new(parts.graph);
    let capacity = case.cache.as_ref().map_or(1, |(_, cache)| cache.capacity);
    let request = LoadRequest {
        graph: Arc::clone(&graph),
        layouts: parts.layouts,
        capacity,
        kv_type,
        activations: Activations::Blocks,
    };
    let shared = Shared::new(gpu, &request)?;
    for (weight, input) in parts.weights.iter().enumerate() {
        match case.inputs.get(*input) {
            Some(CaseInput::Matrix(rows)) => shared.weights.write_packed(gpu, weight, 0, rows)?,
            Some(CaseInput::Vector(vector)) => shared.weights.write_vector(gpu, weight, vector)?,
            _ => return Err(Error::internal("the case has no such weight")),
        }
    }
    if let (Some((spec, cache)), Some([keys, values])) = (&case.cache, shared.caches.first()) {
        gpu.write(keys, 0, &kv_words(&cache.keys, spec.head_dim, kv_type));
        gpu.write(values, 0, &kv_words(&cache.values, spec.head_dim, kv_type));
    }
    gpu.write(&shared.state, 0, State::forward(case.position, case.tokens).words());
    let plan = Plan::new(&graph, Dims { tokens: case.tokens, rows: case.rows })?;
    let draft = Draft::new(&graph, plan, &shared.target)?;
    let pool = Pool::new(gpu, std::slice::from_ref(&draft), &[])?;
    let program = Program::new(gpu, &graph, &draft, &shared, &pool)?;
    program.submit(gpu, program.tokens)?;
    let mut worst = 0f64;
    for (output, expected) in pool.outputs.iter().zip(case.reference()?) {
        let expected = expected.as_f32()?;
        let encoder = gpu.encoder();
        let words = gpu.submit_and_read(encoder, output, expected.len()).await?;
        let found: Vec<f32> = words.into_iter().map(f32::from_bits).collect();
        worst = worst.max(nmse(&found, expected));
    }
    Ok(Outcome { kernels: draft.kernels(), nmse: worst })
}

/// The largest relative error of a sound kernel; over a cache of f16 or bytes, or with weights and activations staged as f16, the
/// rounding of what is written adds to it.
const TOLERANCE: f64 = 1e-8;
const TOLERANCE_F16: f64 = 1e-5;
/// With activations as bytes: their rounding alone makes about 1e-5, ten times that where sums cancel.
pub const TOLERANCE_INT8: f64 = 1e-3;

fn tolerance(case: &Case, kv_type: KvType, kernels: &[String]) -> f64 {
    let named = |word: &str| kernels.iter().any(|kernel| kernel.contains(word));
    match case.cache {
        Some(_) if kv_type == KvType::F32 => TOLERANCE,
        Some(_) => TOLERANCE_F16,
        None if named("_int8") => TOLERANCE_INT8,
        None if named(" f16") => TOLERANCE_F16,
        None => TOLERANCE,
    }
}

/// Checks the kernels that a model uses, each on a small input. Fails, naming the kernels, when one is wrong.
pub async fn self_test(
    gpu: &mut Gpu,
    graph: &Graph,
    layouts: &[PackedLayout],
    kv_type: KvType,
) -> Result<Vec<SelfTest>> {
    test_cases(gpu, &small_cases(graph, layouts, &gpu.caps)?, kv_type).await
}

/// Checks the kernels that these cases use. Fails, naming the kernels, when one is wrong.
pub async fn test_cases(gpu: &mut Gpu, cases: &[Case], kv_type: KvType) -> Result<Vec<SelfTest>> {
    let before = gpu.bytes;
    let mut tests: Vec<SelfTest> = Vec::new();
    for case in cases {
        let outcome = check(gpu, case, kv_type).await?;
        let tolerance = tolerance(case, kv_type, &outcome.kernels);
        if outcome.nmse > tolerance {
            let kernels = outcome.kernels.join(", ");
            return Err(Error::internal(format!(
                "the GPU computes {} wrongly: expected a relative error of at most {tolerance:e}, found {:e} in {kernels}",
                case.op.name(),
                outcome.nmse
            )));
        }
        tests.extend(outcome.kernels.into_iter().map(|kernel| SelfTest { kernel, error: None }));
    }
    tests.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    tests.dedup();
    // The buffers of the cases are gone again.
    gpu.bytes = before;
    Ok(tests)
}

/// The kernels that the cases and the samplers use on a device with these capabilities, each source once.
/// For checks of the sources by other compilers; needs no device.
pub fn kernels(cases: &[Case], caps: Caps) -> Result<Vec<Kernel>> {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut add = |launch: &Launch| {
        if kernels.iter().all(|known| known.source != launch.kernel.source) {
            kernels.push(launch.kernel.clone());
        }
    };
    for case in cases {
        let parts = case.graph()?;
        let graph = Arc::new(parts.graph);
        let capacity = case.cache.as_ref().map_or(1, |(_, cache)| cache.capacity);
        for kv_type in [KvType::F16, KvType::F32, KvType::Q8] {
            let layouts = parts.layouts.clone();
            let (target, _) = Target::new(
                &LoadRequest {
                    graph: Arc::clone(&graph),
                    layouts,
                    capacity,
                    kv_type,
                    activations: Activations::Blocks,
                },
                case.caps(caps),
            )?;
            let plan = Plan::new(&graph, Dims { tokens: case.tokens, rows: case.rows })?;
            Draft::new(&graph, plan, &target)?.launches().for_each(&mut add);
        }
    }
    sample::greedy(100_000, &caps)?.iter().chain(&sample::drawn(100_000, &caps)?).for_each(add);
    Ok(kernels)
}

/// A cache's plane as its words: heads of `head_dim` elements.
fn kv_words(plane: &[f32], head_dim: usize, kv_type: KvType) -> Vec<u32> {
    match kv_type {
        KvType::F32 => plane.iter().map(|value| value.to_bits()).collect(),
        KvType::F16 => {
            let half = |value: f32| u32::from(half::f16::from_f32(value).to_bits());
            plane.as_chunks::<2>().0.iter().map(|[low, high]| half(*low) | half(*high) << 16).collect()
        }
        KvType::Q8 => {
            let (mut words, mut tops) = (Vec::new(), Vec::new());
            for head in plane.chunks(head_dim.max(1)) {
                let mut codes = vec![0; head.len().next_multiple_of(8)];
                let mut head_tops = vec![0.0; head.len().div_ceil(2 * KV_BLOCK) * 2];
                quantize_kv(head, &mut codes, &mut head_tops);
                words.extend(codes.as_chunks::<4>().0.iter().map(|code| u32::from_le_bytes(code.map(|x| x as u8))));
                tops.extend(head_tops.into_iter().map(f32::to_bits));
            }
            words.extend(tops);
            words
        }
    }
}
