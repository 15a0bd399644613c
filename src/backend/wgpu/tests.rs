//! Every kernel against the references, on whatever adapter there is; a missing one fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::check::{TOLERANCE_INT8, check, kernels, test_cases};
use super::device::Gpu;
use super::model::Model;
use crate::backend::samples;
use crate::backend::sampling::draw_from_vocabulary;
use crate::backend::{DeviceSampling, Executable, KvType, LoadRequest, OpenOptions, Steps};
use crate::error::{ErrorKind, Result};
use crate::graph::{CacheSpec, Fact, GraphBuilder, Operator, ReferenceCx};
use crate::kernels::CpuCx;
use crate::ops::cases::{self, Case, CaseInput, Random};
use crate::ops::{Add, Embed, Gate, Linear, Pairs, RmsNorm};
use crate::optimize::optimize;
use crate::quant::{Codes, PackedLayout};
use crate::quantize::Activations;
use crate::shader::{Caps, Kernel, Launch, LaunchCx};
use crate::tensor::Tensor;
use futures::executor::block_on;
use std::sync::Arc;

const ANY_ADAPTER: OpenOptions =
    OpenOptions { allow_fallback_adapter: true, threads: None, high_performance: false, now_ms: || 0.0 };
const NO_ADAPTER: &str = "no adapter: install mesa-vulkan-drivers and libvulkan1, or a GPU's driver";

/// A device that has no more than WebGPU guarantees: it refuses kernels that need more.
fn gpu() -> Gpu {
    block_on(Gpu::open_least(ANY_ADAPTER)).expect(NO_ADAPTER)
}

/// A device with all that the adapter has.
fn whole_gpu() -> Gpu {
    block_on(Gpu::open(ANY_ADAPTER)).expect(NO_ADAPTER)
}

/// The largest relative error of an operation over an f32 cache.
fn tolerance(case: &Case) -> f64 {
    match case.op.name() {
        "linear" | "attention" => 1e-10,
        "embed" => 1e-13,
        _ => 1e-12,
    }
}

/// The largest relative error over activations in bytes: of so few rows that a sum near zero is not made up for by
/// others, ten times that of many.
fn of_bytes(case: &Case) -> f64 {
    let few = |input: &CaseInput| matches!(input, CaseInput::Matrix(matrix) if matrix.rows < 4);
    if case.inputs.iter().any(few) { 10.0 * TOLERANCE_INT8 } else { TOLERANCE_INT8 }
}

/// Runs the cases that `wanted` takes, on a device with the capabilities `caps`.
fn check_cases(caps: Caps, kv_type: KvType, wanted: impl Fn(&Case) -> bool, tolerance: impl Fn(&Case) -> f64 + Sync) {
    check_all(caps, kv_type, cases::cases().unwrap().into_iter().filter(wanted).collect(), tolerance);
}

/// Cases that one device checks: what takes the time is making their pipelines, which devices do side by side.
const CASES_OF_A_DEVICE: usize = 50;

fn check_all(caps: Caps, kv_type: KvType, cases: Vec<Case>, tolerance: impl Fn(&Case) -> f64 + Sync) {
    assert!(!cases.is_empty());
    let failures: Vec<String> = std::thread::scope(|scope| {
        let tolerance = &tolerance;
        let shares = cases.chunks(CASES_OF_A_DEVICE);
        let shares = shares.map(|share| scope.spawn(move || failures(caps, kv_type, share, tolerance)));
        shares.collect::<Vec<_>>().into_iter().flat_map(|share| share.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

fn failures(caps: Caps, kv_type: KvType, cases: &[Case], tolerance: impl Fn(&Case) -> f64) -> Vec<String> {
    let mut gpu = if caps.f16 { whole_gpu() } else { gpu() };
    gpu.caps = caps;
    let mut failures = Vec::new();
    for case in cases {
        match block_on(check(&mut gpu, case, kv_type)) {
            Ok(outcome) if outcome.nmse <= tolerance(case) => {}
            Ok(outcome) => failures.push(format!("{}: {:?}: error {:e}", case.name, outcome.kernels, outcome.nmse)),
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    failures
}

/// The kernels of a real GPU whose limits are WebGPU's least, on whatever runs them here.
#[test]
fn every_case_agrees_with_its_reference() {
    check_cases(Caps::WEBGPU_MINIMUM, KvType::F32, |_| true, tolerance);
}

#[test]
fn linear_on_a_software_adapter_agrees_with_the_reference() {
    let caps = Caps::WEBGPU_MINIMUM.of_software();
    check_cases(caps, KvType::F32, |case| case.op.name() == "linear", tolerance);
}

#[test]
fn linear_over_bytes_agrees_with_the_reference() {
    let one = |case: &Case| case.op.name() == "linear" && case.tokens == 1;
    let caps = Caps { int8: true, ..Caps::WEBGPU_MINIMUM };
    check_cases(caps, KvType::F32, one, of_bytes);
    // From few tiles for the device to many; how weights are stored makes no difference to that.
    for parallel in [3000, 1000, 200, 100, 5] {
        let caps = Caps { parallel, software: parallel <= 1000, ..caps };
        check_cases(caps, KvType::F32, |case| one(case) && case.name.contains("b4g32a"), of_bytes);
    }
    check_cases(caps, KvType::F32, |case| case.op.name() == "linear" && case.tokens > 1, of_bytes);
}

#[test]
fn activations_of_very_tall_matrices_become_bytes_in_a_dispatch_before() {
    let mut gpu = gpu();
    gpu.caps = Caps { int8: true, parallel: 100, ..Caps::WEBGPU_MINIMUM };
    let q4 = PackedLayout::Coded { codes: Codes::B4, group: 32, affine: false };
    for norm in [None, Some(1e-5)] {
        let op = Linear { norm, ..Linear::PLAIN };
        let mut of = |rows| {
            let case = cases::linear_case(op, &[q4], &[rows], (1024, 1), &mut Random::new(7)).unwrap();
            block_on(check(&mut gpu, &case, KvType::F32)).unwrap()
        };
        let (tall, low) = (of(256), of(240));
        assert!(tall.nmse <= TOLERANCE_INT8, "{:e}", tall.nmse);
        let quantize = if norm.is_some() { "quantize_row norm" } else { "quantize_row" };
        assert_eq!(tall.kernels, [quantize, "matvec_int8 b4g32"]);
        assert!(!low.kernels.iter().any(|kernel| kernel.starts_with("quantize_row")), "{:?}", low.kernels);
    }
}

/// The kernels of cases with the constants that say how they walk a matrix.
fn walks(cases: &[Case], caps: Caps) -> Vec<(String, Vec<String>)> {
    let walk = ["const WG:", "const LANES:", "const SPAN:", "const UNROLL:", "const K8:"];
    let constants = |kernel: &Kernel| -> Vec<String> {
        kernel
            .source
            .lines()
            .filter(|line| walk.iter().any(|start| line.starts_with(start)))
            .map(str::to_owned)
            .collect()
    };
    kernels(cases, caps).unwrap().iter().map(|kernel| (kernel.name.clone(), constants(kernel))).collect()
}

#[test]
fn the_self_test_of_matrix_products_runs_the_kernels_of_their_shapes() {
    let q4 = PackedLayout::Coded { codes: Codes::B4, group: 32, affine: false };
    let qkv = Linear { n_matrices: 3, norm: Some(1e-5), ..Linear::PLAIN };
    let gated = Linear { n_matrices: 2, norm: Some(1e-5), gate: Some(Gate::Silu), ..Linear::PLAIN };
    let mut seen = Vec::new();
    for (int8, parallel) in [(true, 200_000), (true, 2000), (true, 100), (false, 200_000), (false, 2000)] {
        let caps = Caps { int8, parallel, ..Caps::WEBGPU_MINIMUM };
        for (op, rows, columns) in
            [(Linear::PLAIN, vec![4096], 512), (qkv, vec![512, 128, 128], 256), (gated, vec![240; 2], 256)]
        {
            let layouts = vec![q4; rows.len()];
            let case = cases::linear_case(op, &layouts, &rows, (columns, 1), &mut Random::new(7)).unwrap();
            let parts = case.graph().unwrap();
            let small = cases::small_cases(&parts.graph, &parts.layouts, &caps).unwrap();
            let one: Vec<Case> = small.into_iter().filter(|case| case.tokens == 1).collect();
            let expected = walks(&[case], caps);
            assert_eq!(walks(&one, caps), expected, "{op:?} of {rows:?}, {caps:?}");
            seen.extend(expected.into_iter().filter(|walk| !seen.contains(walk)).collect::<Vec<_>>());
        }
    }
    let kernels = ["quantize_row", "matvec_int8 b4g32", "matvec_int8_ahead b4g32 gated norm", "matvec b4g32"];
    for kernel in kernels {
        assert!(seen.iter().any(|(name, _)| name == kernel), "{kernel} is not among {seen:?}");
    }
}

/// The largest relative error with weights and activations staged as f16.
const STAGED_AS_F16: f64 = 5e-7;

#[test]
fn linear_staged_as_f16_agrees_with_the_reference() {
    assert!(whole_gpu().caps.f16, "the adapter has no f16");
    let caps = Caps { f16: true, ..Caps::WEBGPU_MINIMUM };
    check_cases(caps, KvType::F32, |case| case.op.name() == "linear" && case.tokens > 1, |_| STAGED_AS_F16);
}

/// How many random shapes a kernel is checked with: each is a pipeline of its own, slow to make on a software adapter.
fn random_shapes() -> usize {
    if std::env::var_os("HANZO_EDGE_FULL").is_some() { 200 } else { 12 }
}

#[test]
fn linear_of_random_shapes_agrees_with_the_reference() {
    let cases = cases::random_linear_cases(random_shapes(), &[1]).unwrap();
    for (at, parallel) in [200_000, 3000, 1000, 100, 5].into_iter().enumerate() {
        let share: Vec<Case> = cases.iter().skip(at).step_by(5).cloned().collect();
        let caps = Caps { parallel, software: parallel <= 1000, ..Caps::WEBGPU_MINIMUM };
        check_all(caps, KvType::F32, share.clone(), tolerance);
        check_all(Caps { int8: true, ..caps }, KvType::F32, share, of_bytes);
    }
}

/// Numbers of tokens around the borders of blocks.
const MANY: [usize; 11] = [5, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129];

#[test]
fn linear_of_random_shapes_and_many_tokens_agrees_with_the_reference() {
    let cases = cases::random_linear_cases(random_shapes(), &MANY).unwrap();
    check_all(Caps::WEBGPU_MINIMUM, KvType::F32, cases.clone(), tolerance);
    check_all(Caps { f16: true, ..Caps::WEBGPU_MINIMUM }, KvType::F32, cases.clone(), |_| STAGED_AS_F16);
    check_all(Caps { int8: true, ..Caps::WEBGPU_MINIMUM }, KvType::F32, cases, of_bytes);
}

/// The least capabilities, with the loops of kernels written out only where that does not take the adapter minutes.
fn least_of_adapter() -> Caps {
    let Caps { parallel, software, .. } = gpu().caps;
    Caps { parallel, software, ..Caps::WEBGPU_MINIMUM }
}

#[test]
fn attention_of_random_shapes_agrees_with_the_reference() {
    let caps = least_of_adapter();
    for tokens in [&[1][..], &MANY] {
        let cases = cases::random_attention_cases(random_shapes(), tokens).unwrap();
        check_all(caps, KvType::F32, cases.clone(), tolerance);
        check_all(caps, KvType::F16, cases.clone(), |_| F16_CACHE);
        check_all(caps, KvType::Q8, cases, |_| Q8_CACHE);
    }
}

/// No software adapter has matrix units: the sources at least are sound.
#[test]
fn kernels_for_matrix_units_are_valid() {
    use wgpu::naga::{front::wgsl, valid};
    let caps = Caps { f16: true, matrix: true, workgroup_bytes: 48 << 10, ..Caps::WEBGPU_MINIMUM };
    let kernels = super::kernels(&cases::linear_cases().unwrap(), caps).unwrap();
    let kernels: Vec<_> = kernels.iter().filter(|kernel| kernel.name.starts_with("matmul_matrix")).collect();
    assert!(kernels.len() > 20);
    for kernel in kernels {
        let module = wgsl::parse_str(&kernel.source).map_err(|error| error.emit_to_string(&kernel.source)).unwrap();
        valid::Validator::new(valid::ValidationFlags::all(), valid::Capabilities::all()).validate(&module).unwrap();
    }
}

/// The largest relative errors over a rounded cache: a decoded token sees its own key and value as they are, the
/// reference sees them rounded.
const F16_CACHE: f64 = 1e-6;
const Q8_CACHE: f64 = 3e-5;

#[test]
fn attention_over_a_rounded_cache_agrees_with_the_reference() {
    for (kv_type, tolerance) in [(KvType::F16, F16_CACHE), (KvType::Q8, Q8_CACHE)] {
        check_cases(least_of_adapter(), kv_type, |case| case.cache.is_some(), |_| tolerance);
    }
}

/// A model whose logits do not depend on its tokens.
fn constant_logits(logits: &[f32], capacity: usize) -> Model {
    let mut builder = GraphBuilder::default();
    let logits = Tensor::f32([1, logits.len()], logits.to_vec()).unwrap();
    let zeros = Tensor::f32(logits.shape(), vec![0.0; logits.shape()[1]]).unwrap();
    let inputs = [builder.constant("logits", logits), builder.constant("zeros", zeros)];
    let output = builder.op("sum", Add, &inputs).unwrap();
    let graph = Arc::new(builder.finish(&[output]));
    let request =
        LoadRequest { graph, layouts: Vec::new(), capacity, kv_type: KvType::F32, activations: Activations::Blocks };
    let mut model = Model::new(whole_gpu(), request).unwrap();
    block_on(model.finish()).unwrap();
    model
}

/// So many steps, after which no more are wanted.
fn only(now: usize) -> Steps {
    Steps { now, more: false }
}

/// So many steps, and probably more.
fn and_more(now: usize) -> Steps {
    Steps { now, more: true }
}

#[test]
fn tokens_are_drawn_as_on_every_backend() {
    const STEPS: usize = 100;
    let mut random = Random::new(9);
    let mut logits: Vec<f32> = random.values(70_001).into_iter().map(|x| x * 8.0).collect();
    // Equal maxima: the lower id wins.
    (logits[65_600], logits[65_700]) = (8.5, 8.5);
    let mut model = constant_logits(&logits, 2 * STEPS);
    block_on(model.forward(&[0], 0)).unwrap();
    let sampling =
        |temperature, top_k, top_p, min_p| DeviceSampling { temperature, top_k, top_p, min_p, seed: 11, counter: 5 };
    for sampling in [
        sampling(0.0, 40, 1.0, 0.0),
        sampling(1.0, 64, 1.0, 0.0),
        sampling(0.8, 40, 0.95, 0.05),
        sampling(3.0, 7, 1.0, 0.0),
        sampling(1.5, 64, 0.3, 0.0),
        sampling(1.0, 64, 1.0, 0.9),
    ] {
        let found = block_on(model.decode(1, only(STEPS), sampling)).unwrap();
        let expected: Vec<u32> =
            (0..STEPS as u32).map(|step| draw_from_vocabulary(&logits, &sampling, step).unwrap()).collect();
        let differing = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
        // A draw within rounding of a border may fall on either side.
        assert!(differing <= 1, "{sampling:?}: {found:?} is not {expected:?}");
        assert_eq!(found.len(), STEPS);
        // In pieces, each begun while the one before it is read.
        let mut pieces = Vec::new();
        while pieces.len() < STEPS {
            let counter = sampling.counter + pieces.len() as u32;
            let next = DeviceSampling { counter, ..sampling };
            let steps = and_more(7.min(STEPS - pieces.len()));
            pieces.extend(block_on(model.decode(1 + pieces.len(), steps, next)).unwrap());
        }
        assert_eq!(pieces, found, "{sampling:?}");
    }
}

#[test]
fn steps_beyond_the_capacity_are_refused() {
    let mut model = constant_logits(&[0.0, 1.0], 8);
    let error = block_on(model.forward(&[0; 9], 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
    let error = block_on(model.forward(&[], 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
    block_on(model.forward(&[0; 8], 0)).unwrap();
    assert_eq!(block_on(model.logits()).unwrap(), [0.0, 1.0]);
}

#[test]
fn a_cache_that_no_address_could_hold_is_beyond_the_limits() {
    for capacity in [1 << 40, usize::MAX] {
        let mut builder = GraphBuilder::default();
        builder.cache(CacheSpec { n_kv_heads: 8, head_dim: 1 << 10 });
        let zero = builder.constant("zero", Tensor::f32([1, 1], vec![0.0]).unwrap());
        let graph = Arc::new(builder.finish(&[zero]));
        let request = LoadRequest {
            graph,
            layouts: Vec::new(),
            capacity,
            kv_type: KvType::F32,
            activations: Activations::Blocks,
        };
        let Err(error) = Model::new(gpu(), request) else { panic!("{capacity} tokens were accepted") };
        assert_eq!(error.kind(), ErrorKind::Limits);
    }
}

#[test]
fn a_software_adapter_is_refused_unless_asked_for() {
    let Err(error) = block_on(Gpu::open(OpenOptions::default())) else {
        println!("skipped: there is a real GPU here, which is opened instead");
        return;
    };
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_faulty_shader_is_an_error_and_the_device_stays_usable() {
    let mut gpu = gpu();
    let kernel = Kernel { name: "broken".to_owned(), source: "fn main() { return 1; }".to_owned() };
    let error = gpu.pipeline(&kernel, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    let cases = cases::elementwise_cases().unwrap();
    assert!(block_on(check(&mut gpu, &cases[0], KvType::F32)).unwrap().nmse < 1e-12);
}

#[test]
fn a_lost_device_is_reported_as_such() {
    let mut gpu = gpu();
    gpu.device.destroy();
    let buffer = gpu.buffer("late", 64, wgpu::BufferUsages::empty());
    let error = match buffer {
        Err(error) => error,
        Ok(buffer) => {
            let encoder = gpu.encoder();
            block_on(gpu.submit_and_read(encoder, &buffer, 1)).unwrap_err()
        }
    };
    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
}

/// A small decoder on a device with no more than WebGPU guarantees, on which kernels take `caps`.
fn decoder_on_least(case: &samples::Case, caps: Caps) -> Model {
    let mut gpu = gpu();
    gpu.caps = caps;
    let mut model = Model::new(gpu, case.request()).unwrap();
    case.fill(&mut model);
    model
}

/// The same with weights of four bits, an f16 cache and the least capabilities.
fn quantized_decoder() -> Model {
    let mut graph = samples::decoder(Pairs::Halves, None);
    optimize(&mut graph).unwrap();
    let case = samples::Case { graph, format: "q4_0", kv_type: KvType::F16 };
    decoder_on_least(&case, Caps::WEBGPU_MINIMUM)
}

#[test]
fn a_model_within_the_least_limits_gives_the_reference_logits() {
    for (pairs, window) in [(Pairs::Halves, None), (Pairs::Interleaved, Some(20))] {
        let mut graph = samples::decoder(pairs, window);
        optimize(&mut graph).unwrap();
        for (format, kv_type, int8, tolerance) in [
            ("f32", KvType::F32, false, 1e-9),
            ("f16", KvType::F16, false, 1e-6),
            ("q4_0", KvType::Q8, false, 1e-5),
            ("q8_0", KvType::F16, true, 5e-4),
        ] {
            let case = samples::Case { graph: graph.clone(), format, kv_type };
            let expected = samples::logits(&mut *samples::load("reference", &case, 1));
            // Buffers so small that matrices are split over them.
            let caps = Caps { int8, binding_bytes: 20 << 10, ..Caps::WEBGPU_MINIMUM };
            let mut model = decoder_on_least(&case, caps);
            assert!(model.report().self_test.iter().all(|test| test.error.is_none()));
            let error = samples::nmse(&expected, &samples::logits(&mut model));
            assert!(error < tolerance, "{format} {kv_type:?}: {error:e}");
        }
    }
}

/// Grids that one axis cannot hold.
#[test]
fn more_workgroups_than_an_axis_holds_are_spread_over_two() {
    let caps = Caps { workgroups: 64, ..Caps::WEBGPU_MINIMUM };
    let q4 = PackedLayout::Coded { codes: Codes::B4, group: 32, affine: false };
    let mut random = Random::new(13);
    let norm = Linear { norm: Some(1e-6), ..Linear::PLAIN };
    let mut cases = vec![cases::linear_case(Linear::PLAIN, &[q4], &[9001], (64, 1), &mut random).unwrap()];
    cases.push(cases::linear_case(norm, &[q4], &[5], (33, 130), &mut random).unwrap());
    check_all(caps, KvType::F32, cases.clone(), tolerance);
    cases.truncate(1);
    check_all(Caps { int8: true, ..caps }, KvType::F32, cases, of_bytes);
}

const GREEDY: DeviceSampling =
    DeviceSampling { temperature: 0.0, top_k: 1, top_p: 1.0, min_p: 0.0, seed: 0, counter: 0 };

#[test]
fn a_device_lost_between_two_tokens_is_an_error_and_another_goes_on_alike() {
    let prompt = samples::prompt();
    let start = |model: &mut Model| block_on(model.forward(&prompt[..20], 0)).unwrap();
    let mut model = quantized_decoder();
    start(&mut model);
    let whole = block_on(model.decode(20, only(12), GREEDY)).unwrap();
    start(&mut model);
    let first = block_on(model.decode(20, only(5), GREEDY)).unwrap();
    assert_eq!(first, whole[..5]);
    model.lose_device();
    for _ in 0..2 {
        let error = block_on(model.decode(25, only(7), GREEDY)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
        assert_eq!(block_on(model.logits()).unwrap_err().kind(), ErrorKind::DeviceLost);
    }
    let mut model = quantized_decoder();
    start(&mut model);
    assert_eq!(block_on(model.decode(20, only(12), GREEDY)).unwrap(), whole);
}

/// The device begins with a token that is likely to be asked for; when something else is, nothing is left of it.
#[test]
fn a_token_that_was_begun_and_not_wanted_changes_nothing() {
    let prompt = samples::prompt();
    let mut model = quantized_decoder();
    // So hot that tokens vary, and with them what follows.
    let start = DeviceSampling { temperature: 2.0, top_k: 64, ..GREEDY };
    let mut run = |steps: Steps, then: &dyn Fn(&mut Model) -> Vec<u32>| {
        block_on(model.forward(&prompt[..20], 0)).unwrap();
        let first = block_on(model.decode(20, steps, start)).unwrap();
        (first, then(&mut model))
    };
    let next = DeviceSampling { counter: 5, ..start };
    let drawn = |seed| DeviceSampling { seed, ..next };
    // Logits of two neighbours tell themselves apart by what is drawn from them.
    let from = |position| {
        move |model: &mut Model| {
            (0..9).flat_map(|seed| block_on(model.decode(position, only(1), drawn(seed))).unwrap()).collect()
        }
    };
    assert_ne!(run(only(5), &from(25)).1, run(only(6), &from(26)).1);
    let bits = |logits: Vec<f32>| logits.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let others: [&dyn Fn(&mut Model) -> Vec<u32>; 9] = [
        &|model| block_on(model.decode(25, only(7), next)).unwrap(),
        &|model| block_on(model.decode(25, and_more(7), drawn(1))).unwrap(),
        &from(25),
        &|model| {
            assert!(block_on(model.profile(false)).unwrap().is_empty());
            block_on(model.decode(25, only(7), drawn(2))).unwrap()
        },
        &|model| bits(block_on(model.logits()).unwrap()),
        &|model| {
            block_on(model.logits()).unwrap();
            block_on(model.decode(25, only(7), next)).unwrap()
        },
        &|model| {
            block_on(model.forward(&prompt[..3], 25)).unwrap();
            block_on(model.decode(28, only(7), next)).unwrap()
        },
        &|model| {
            let mut found = bits(block_on(model.score(&prompt[..3], 25)).unwrap());
            found.extend(bits(block_on(model.logits()).unwrap()));
            found
        },
        &|model| {
            block_on(model.save(0, 25)).unwrap();
            let mut found = block_on(model.decode(25, and_more(3), next)).unwrap();
            block_on(model.restore(0, 25)).unwrap();
            block_on(model.forward(&prompt[..1], 25)).unwrap();
            found.extend(block_on(model.decode(26, only(7), next)).unwrap());
            found
        },
    ];
    for (number, other) in others.into_iter().enumerate() {
        assert_eq!(run(and_more(5), other), run(only(5), other), "{number}");
    }
}

/// Whoever drops a future leaves work behind on the device; what comes after it is right all the same.
#[test]
fn a_step_that_is_left_does_not_touch_the_next_request() {
    let prompt = samples::prompt();
    let mut model = quantized_decoder();
    let answer = |model: &mut Model| {
        block_on(model.forward(&prompt[..33], 0)).unwrap();
        block_on(model.decode(33, only(9), GREEDY)).unwrap()
    };
    let whole = answer(&mut model);
    block_on(model.forward(&prompt[3..40], 0)).unwrap();
    // Not one poll, then one, which may end with the work still under way.
    drop(model.decode(37, only(20), GREEDY));
    let mut left = model.decode(37, only(20), GREEDY);
    let _ = futures::FutureExt::now_or_never(&mut left);
    drop(left);
    assert_eq!(answer(&mut model), whole);
}

#[test]
fn a_large_matrix_is_split_over_buffers() {
    let layout = PackedLayout::Coded { codes: Codes::B4, group: 32, affine: false };
    let mut random = Random::new(12);
    let mut gpu = gpu();
    gpu.caps = Caps { binding_bytes: 64 << 10, ..Caps::WEBGPU_MINIMUM };
    for tokens in [1, 5] {
        let op = Linear { bias: true, residual: true, ..Linear::PLAIN };
        let case = cases::linear_case(op, &[layout], &[1001], (256, tokens), &mut random).unwrap();
        assert!(block_on(check(&mut gpu, &case, KvType::F32)).unwrap().nmse < 1e-10);
    }
    let ids = CaseInput::Tensor(Tensor::u32([4], vec![0, 1000, 500, 3]).unwrap());
    let inputs = vec![ids, random.matrix(layout, 1001, 256).unwrap()];
    let case = Case {
        name: "split table".to_owned(),
        op: Arc::new(Embed),
        inputs,
        tokens: 4,
        rows: 4,
        position: 0,
        cache: None,
        parallel: None,
    };
    assert!(block_on(check(&mut gpu, &case, KvType::F32)).unwrap().nmse < 1e-13);
}

/// A norm whose GPU kernel has another constant in its header than its reference.
#[derive(Debug)]
struct WrongNorm {
    reference: RmsNorm,
    gpu: RmsNorm,
}

impl Operator for WrongNorm {
    fn name(&self) -> &'static str {
        self.reference.name()
    }

    fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
        self.reference.infer(inputs)
    }

    fn reference(&self, cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.reference.reference(cx, inputs)
    }

    fn cpu(&self, cx: &mut CpuCx<'_>) -> Result<()> {
        self.reference.cpu(cx)
    }

    fn gpu(&self, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
        self.gpu.gpu(cx)
    }
}

#[test]
fn the_self_test_names_a_wrong_kernel() {
    let mut gpu = gpu();
    let mut case = cases::rms_norm_cases().unwrap().remove(0);
    let right = *case.op.downcast_ref::<RmsNorm>().unwrap();
    let tests = block_on(test_cases(&mut gpu, std::slice::from_ref(&case), KvType::F32)).unwrap();
    assert_eq!(tests.iter().map(|test| test.kernel.as_str()).collect::<Vec<_>>(), ["rms_norm"]);
    case.op = Arc::new(WrongNorm { reference: right, gpu: RmsNorm { eps: right.eps + 1e-2 } });
    let error = block_on(test_cases(&mut gpu, &[case], KvType::F32)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.message().ends_with("in rms_norm"), "{error}");
}

/// Matrix units where there are none stand for ones that a driver gets wrong.
#[test]
fn a_model_does_without_what_the_device_gets_wrong() {
    let mut builder = GraphBuilder::default();
    let x = builder.constant("x", Tensor::f32([1, 64], vec![1.0; 64]).unwrap());
    let matrix = builder.matrix("matrix", 8, 64);
    let output = builder.op("product", Linear::PLAIN, &[x, matrix]).unwrap();
    let graph = Arc::new(builder.finish(&[output]));
    let mut gpu = whole_gpu();
    if gpu.caps.matrix {
        println!("skipped: there are matrix units here");
        return;
    }
    gpu.caps = Caps { f16: true, matrix: true, ..Caps::WEBGPU_MINIMUM };
    let layouts = vec![PackedLayout::F16];
    let mut model = Model::new(
        gpu,
        LoadRequest { graph, layouts, capacity: 8, kv_type: KvType::F32, activations: Activations::Blocks },
    )
    .unwrap();
    block_on(model.finish()).unwrap();
    let report = model.report();
    let faults: Vec<_> = report.self_test.iter().filter(|test| test.error.is_some()).collect();
    assert_eq!(faults.iter().map(|test| test.kernel.as_str()).collect::<Vec<_>>(), ["matrix units"]);
    assert!(report.self_test.iter().any(|test| test.error.is_none() && test.kernel.starts_with("matmul f16")));
    block_on(model.forward(&[0], 0)).unwrap();
    assert_eq!(block_on(model.logits()).unwrap(), [0.0; 8]);
}

#[test]
fn a_profile_counts_every_dispatch() {
    let mut model = constant_logits(&[0.0, 1.0, 0.5], 8);
    assert!(block_on(model.profile(true)).unwrap().is_empty());
    block_on(model.forward(&[0], 0)).unwrap();
    let greedy = DeviceSampling { temperature: 0.0, top_k: 1, top_p: 1.0, min_p: 0.0, seed: 0, counter: 0 };
    assert_eq!(block_on(model.decode(1, only(3), greedy)).unwrap(), [1, 1, 1]);
    let times = block_on(model.profile(false)).unwrap();
    let calls = |kernel: &str| times.iter().filter(|time| time.kernel == kernel).map(|time| time.calls).sum::<u64>();
    assert_eq!(calls("elementwise add"), 4);
    assert_eq!(calls("sample_greedy"), 3);
    assert!(times.iter().all(|time| time.us >= 0.0 && time.us < 1e9));
}
