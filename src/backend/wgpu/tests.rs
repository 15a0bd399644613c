//! Every kernel against the references, on whatever adapter there is; a missing one fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::check::{TOLERANCE_INT8, check, test_cases};
use super::device::Gpu;
use super::model::Model;
use crate::backend::sampling::draw_from_vocabulary;
use crate::backend::{DeviceSampling, Executable, KvType, LoadRequest, OpenOptions};
use crate::error::{ErrorKind, Result};
use crate::graph::{CacheSpec, Fact, GraphBuilder, Operator, ReferenceCx};
use crate::kernels::CpuCx;
use crate::ops::cases::{self, Case, CaseInput, Random};
use crate::ops::{Add, Embed, Linear, RmsNorm};
use crate::quant::{Codes, PackedLayout};
use crate::quantize::Activations;
use crate::shader::{Caps, Kernel, Launch, LaunchCx};
use crate::tensor::Tensor;
use futures::executor::block_on;
use std::sync::Arc;

fn gpu() -> Gpu {
    let options = OpenOptions { allow_fallback_adapter: true, ..OpenOptions::default() };
    block_on(Gpu::open(options)).expect("no adapter: install mesa-vulkan-drivers and libvulkan1, or a GPU's driver")
}

/// The largest relative error of an operation over an f32 cache.
fn tolerance(op: &str) -> f64 {
    match op {
        "linear" | "attention" => 1e-10,
        "embed" => 1e-13,
        _ => 1e-12,
    }
}

/// Runs the cases that `wanted` takes, on a device with the capabilities `caps`.
fn check_cases(caps: Caps, kv_type: KvType, wanted: impl Fn(&Case) -> bool, tolerance: impl Fn(&str) -> f64) {
    check_all(caps, kv_type, cases::cases().unwrap().into_iter().filter(wanted).collect(), tolerance);
}

fn check_all(caps: Caps, kv_type: KvType, cases: Vec<Case>, tolerance: impl Fn(&str) -> f64) {
    let mut gpu = gpu();
    gpu.caps = caps;
    assert!(!cases.is_empty());
    let mut failures = Vec::new();
    for case in &cases {
        match block_on(check(&mut gpu, case, kv_type)) {
            Ok(outcome) if outcome.nmse <= tolerance(case.op.name()) => {}
            Ok(outcome) => failures.push(format!("{}: {:?}: error {:e}", case.name, outcome.kernels, outcome.nmse)),
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
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
    // From few tiles for the device to many.
    for parallel in [200_000, 3000, 1000, 200, 100] {
        let caps = Caps { int8: true, parallel, ..Caps::WEBGPU_MINIMUM };
        check_cases(caps, KvType::F32, |case| case.op.name() == "linear" && case.tokens == 1, |_| TOLERANCE_INT8);
    }
    let caps = Caps { int8: true, ..Caps::WEBGPU_MINIMUM };
    check_cases(caps, KvType::F32, |case| case.op.name() == "linear" && case.tokens > 1, |_| TOLERANCE_INT8);
}

/// The largest relative error with weights and activations staged as f16.
const STAGED_AS_F16: f64 = 5e-7;

#[test]
fn linear_staged_as_f16_agrees_with_the_reference() {
    assert!(gpu().caps.f16, "the adapter has no f16");
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
    for (at, parallel) in [200_000, 3000, 1000, 100].into_iter().enumerate() {
        let share: Vec<Case> = cases.iter().skip(at).step_by(4).cloned().collect();
        let caps = Caps { parallel, ..Caps::WEBGPU_MINIMUM };
        check_all(caps, KvType::F32, share.clone(), tolerance);
        check_all(Caps { int8: true, ..caps }, KvType::F32, share, |_| TOLERANCE_INT8);
    }
}

/// Numbers of tokens around the borders of blocks.
const MANY: [usize; 11] = [5, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129];

#[test]
fn linear_of_random_shapes_and_many_tokens_agrees_with_the_reference() {
    let cases = cases::random_linear_cases(random_shapes(), &MANY).unwrap();
    check_all(Caps::WEBGPU_MINIMUM, KvType::F32, cases.clone(), tolerance);
    check_all(Caps { f16: true, ..Caps::WEBGPU_MINIMUM }, KvType::F32, cases.clone(), |_| STAGED_AS_F16);
    check_all(Caps { int8: true, ..Caps::WEBGPU_MINIMUM }, KvType::F32, cases, |_| TOLERANCE_INT8);
}

#[test]
fn attention_of_random_shapes_agrees_with_the_reference() {
    for tokens in [&[1][..], &MANY] {
        let cases = cases::random_attention_cases(random_shapes(), tokens).unwrap();
        check_all(Caps::WEBGPU_MINIMUM, KvType::F32, cases.clone(), tolerance);
        check_all(Caps::WEBGPU_MINIMUM, KvType::F16, cases, |_| 1e-6);
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

#[test]
fn attention_over_an_f16_cache_agrees_with_the_reference() {
    check_cases(Caps::WEBGPU_MINIMUM, KvType::F16, |case| case.cache.is_some(), |_| 1e-6);
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
    let mut model = Model::new(gpu(), request).unwrap();
    block_on(model.finish()).unwrap();
    model
}

#[test]
fn tokens_are_drawn_as_on_every_backend() {
    const STEPS: usize = 40;
    let mut random = Random::new(9);
    let mut logits: Vec<f32> = random.values(70_001).into_iter().map(|x| x * 8.0).collect();
    // Equal maxima: the lower id wins.
    (logits[65_600], logits[65_700]) = (8.5, 8.5);
    let mut model = constant_logits(&logits, 4 * STEPS);
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
        let found = block_on(model.decode(1, STEPS, sampling)).unwrap();
        let expected: Vec<u32> =
            (0..STEPS as u32).map(|step| draw_from_vocabulary(&logits, &sampling, step).unwrap()).collect();
        let differing = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
        // A draw within rounding of a border may fall on either side.
        assert!(differing <= 1, "{sampling:?}: {found:?} is not {expected:?}");
        assert_eq!(found.len(), STEPS);
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

#[test]
fn a_large_matrix_is_split_over_buffers() {
    let layout = PackedLayout::Coded { codes: Codes::B4, group: 32, affine: false };
    let mut random = Random::new(12);
    let mut gpu = gpu();
    gpu.caps.binding_bytes = 64 << 10;
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
    let mut gpu = gpu();
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
    assert_eq!(block_on(model.decode(1, 3, greedy)).unwrap(), [1, 1, 1]);
    let times = block_on(model.profile(false)).unwrap();
    let calls = |kernel: &str| times.iter().filter(|time| time.kernel == kernel).map(|time| time.calls).sum::<u64>();
    assert_eq!(calls("elementwise add"), 4);
    assert_eq!(calls("sample_greedy"), 3);
    assert!(times.iter().all(|time| time.us >= 0.0 && time.us < 1e9));
}
