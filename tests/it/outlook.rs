//! What is told of a model before it is loaded: what it then holds on every backend, and why it does not fit.

use hanzo_edge::backend::{GpuLimits, Machine, MemoryUse};
use hanzo_edge::engine::{Backend, Clock, EdgeConfig, Loader, Need, Outlook};
use hanzo_edge::error::{ErrorKind, Result};

use crate::support::load::{generate, load};
use crate::support::tiny_model::TinyModel;

const GPU: GpuLimits =
    GpuLimits { buffer_bytes: 1 << 30, storage_buffers: 8, workgroup_bytes: 16 << 10, f16: false, int8: false };
const MACHINE: Machine = Machine { gpu: Some(GPU), memory_bytes: None };

/// Reads the header of a file and asks. The data of a file is not needed.
fn outlook(file: &[u8], config: EdgeConfig, machine: &Machine) -> Result<Outlook> {
    let clock = Clock { now_ms: || 0.0, utc_offset_minutes: 0 };
    let mut loader = Loader::new(config, vec![Some(file.len() as u64)], Vec::new(), clock)?;
    while let Need::Prefix { bytes, .. } = loader.need() {
        loader.supply(&file[..bytes as usize])?;
    }
    loader.outlook(machine)
}

fn config(backend: Backend) -> EdgeConfig {
    EdgeConfig { backend, max_context_tokens: 64, ..EdgeConfig::default() }
}

#[test]
fn a_model_holds_what_was_told_on_every_backend() {
    for (architecture, format) in [("llama", "q4_0"), ("qwen3", "q8_0"), ("llama", "f16")] {
        let file = TinyModel::new(architecture, format, 1).builder().build();
        for backend in [Backend::Cpu, Backend::Wgpu, Backend::Reference] {
            let told = outlook(&file, config(backend), &MACHINE).unwrap();
            assert!(told.fault.is_none() && told.rejected.is_empty(), "{told:?}");
            assert_eq!((told.context_tokens, told.backend), (64, backend.name().unwrap()));
            assert_eq!(told.file_bytes.len(), 1);
            let mut model = load(std::slice::from_ref(&file), backend).unwrap();
            generate(&mut model, vec![3; 60], 2).unwrap();
            let held = model.memory();
            let near = |told: u64, held: u64| told.abs_diff(held) * 10 <= held;
            let exact = |memory: MemoryUse| (memory.weights_bytes, memory.kv_bytes);
            assert_eq!(exact(told.memory), exact(held), "{architecture} {format} on {}", told.backend);
            // A software GPU gets fewer programs than the browser's, whose kind nobody tells.
            if backend == Backend::Cpu {
                assert!(
                    near(told.memory.total(), held.weights_bytes + held.kv_bytes + held.scratch_bytes),
                    "{told:?} {held:?}"
                );
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_told_apart() {
    let file = TinyModel::new("llama", "q4_0", 1).builder().build();
    let kind = |config: EdgeConfig, machine: &Machine| {
        let told = outlook(&file, config, machine).unwrap();
        (told.fault.map(|fault| fault.kind()), told.backend)
    };
    let small_gpu = Machine { gpu: Some(GpuLimits { buffer_bytes: 1024, ..GPU }), ..MACHINE };
    let small_memory = Machine { memory_bytes: Some(10_000), ..MACHINE };
    let tight = EdgeConfig { max_memory_bytes: 10_000, ..config(Backend::Cpu) };
    assert_eq!(kind(config(Backend::Wgpu), &MACHINE), (None, "wgpu"));
    assert_eq!(kind(config(Backend::Wgpu), &small_gpu), (Some(ErrorKind::Limits), "wgpu"));
    assert_eq!(kind(config(Backend::Auto), &small_gpu), (None, "cpu"), "another backend takes it");
    assert_eq!(kind(config(Backend::Cpu), &small_memory), (Some(ErrorKind::OutOfMemory), "cpu"));
    assert_eq!(kind(tight, &MACHINE), (Some(ErrorKind::OutOfMemory), "cpu"));
    let rejected = outlook(&file, config(Backend::Auto), &small_gpu).unwrap().rejected;
    assert!(rejected.iter().any(|row| row.backend == "wgpu" && row.reason.contains("1024")), "{rejected:?}");
}
