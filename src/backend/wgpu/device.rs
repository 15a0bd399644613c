//! The GPU as the rest of this folder sees it: buffers, pipelines, submission and readback, with every fault of the
//! device turned into an [`Error`]. Knows no model.

use super::pace::Pace;
use crate::backend::OpenOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::shader::{Access, Binding, Caps, Kernel};
use futures::channel::oneshot;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Invocations and workgroups beyond what WebGPU guarantees are not asked for: no kernel uses them.
pub const MOST_STORAGE_BUFFERS: u32 = 16;
/// Workgroup memory beyond what WebGPU guarantees, for kernels on matrix units alone.
const MATRIX_WORKGROUP_BYTES: u32 = 48 << 10;
/// Uploaded bytes after which the queue is flushed, so that staging memory is given back.
const FLUSH_BYTES: u64 = 32 << 20;

/// What went wrong on the device outside any call, the first of its kind.
type Fault = Arc<Mutex<Option<(ErrorKind, String)>>>;

/// A pipeline with the layout its bind groups need.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub name: Arc<str>,
    pub compute: wgpu::ComputePipeline,
    pub bindings: wgpu::BindGroupLayout,
}

/// An open device.
pub struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub caps: Caps,
    /// The adapter's name and the graphics interface it is reached by.
    pub name: String,
    /// Bytes of the largest buffer that can be made and bound.
    pub buffer_bytes: u64,
    /// Whether kernels run without checks of their indices.
    trusts_kernels: bool,
    fault: Fault,
    lost: Fault,
    pipelines: HashMap<String, Pipeline>,
    /// Bytes of all buffers made.
    pub bytes: u64,
    pub pace: Pace,
    /// Milliseconds since any moment.
    pub now_ms: fn() -> f64,
    staged: u64,
    staging: Option<wgpu::Buffer>,
}

/// Words on their way to the host.
pub struct Readback {
    staging: wgpu::Buffer,
    bytes: u64,
    submitted: wgpu::SubmissionIndex,
    mapped: oneshot::Receiver<std::result::Result<(), wgpu::BufferAsyncError>>,
}

impl Gpu {
    /// Opens the preferred adapter. Fails with the reason why there is none that may be used.
    pub async fn open(options: OpenOptions) -> Result<Self> {
        Self::open_with(options, false).await
    }

    /// Opens it with the limits that WebGPU guarantees and without any feature.
    #[cfg(test)]
    pub async fn open_least(options: OpenOptions) -> Result<Self> {
        Self::open_with(options, true).await
    }

    async fn open_with(options: OpenOptions, least: bool) -> Result<Self> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.flags = wgpu::InstanceFlags::empty();
        descriptor.backends = wgpu::Backends::PRIMARY;
        let instance = wgpu::Instance::new(descriptor);
        let adapter = request_adapter(&instance, options).await?;
        let info = adapter.get_info();
        if info.device_type == wgpu::DeviceType::Cpu && !options.allow_fallback_adapter {
            return Err(Error::not_found(format!(
                "expected a GPU, found only the software adapter {}; the CPU backend is faster than it",
                info.name
            )));
        }
        let matrix = !least && offers_matrix(&adapter, &info);
        let limits = if least { wgpu::Limits::defaults() } else { limits(&adapter.limits(), matrix) };
        let wanted = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::SHADER_F16;
        let mut features = if least { wgpu::Features::empty() } else { adapter.features() & wanted };
        features.set(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX, matrix);
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("hanzo-edge"),
            required_features: features,
            required_limits: limits.clone(),
            experimental_features: matrix_leave(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            trace: wgpu::Trace::Off,
        };
        let (device, queue) = adapter.request_device(&descriptor).await.map_err(|error| {
            Error::limits(format!("the adapter {} gave no device with {limits:?}", info.name)).because(error)
        })?;
        let (fault, lost) = (Fault::default(), Fault::default());
        watch(&device, &fault, &lost);
        let buffer_bytes = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size) / 256 * 256;
        let caps = Caps {
            f16: features.contains(wgpu::Features::SHADER_F16),
            matrix,
            workgroup_bytes: limits.max_compute_workgroup_storage_size as usize,
            storage_buffers: limits.max_storage_buffers_per_shader_stage as usize,
            binding_bytes: buffer_bytes,
            int8: int8_pays(&instance, info.backend),
            ..Caps::WEBGPU_MINIMUM
        };
        let software = info.device_type == wgpu::DeviceType::Cpu;
        let caps = if software { caps.of_software() } else { caps };
        let trusts_kernels = !software && cfg!(not(target_arch = "wasm32"));
        let name = format!("{} ({:?})", info.name, info.backend);
        let pipelines = HashMap::new();
        Ok(Self {
            device,
            queue,
            caps,
            name,
            buffer_bytes,
            trusts_kernels,
            fault,
            lost,
            pipelines,
            bytes: 0,
            pace: Pace::default(),
            now_ms: options.now_ms,
            staged: 0,
            staging: None,
        })
    }

    /// Fails if the device was lost, or anything went wrong on it since the last check.
    pub fn check(&self) -> Result<()> {
        let taken = |fault: &Fault, take: bool| {
            let mut fault = fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if take { fault.take() } else { fault.clone() }
        };
        match taken(&self.lost, false).or_else(|| taken(&self.fault, true)) {
            Some((kind, message)) => Err(Error::new(kind, message).at(self.name.clone())),
            None => Ok(()),
        }
    }

    /// A zeroed buffer for storage and copies; `usage` is added. Fails when it is larger than the device can bind.
    pub fn buffer(&mut self, label: &str, bytes: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
        check_size(label, bytes, self.buffer_bytes)?;
        let size = rounded(bytes);
        let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let descriptor =
            wgpu::BufferDescriptor { label: Some(label), size, usage: storage | usage, mapped_at_creation: false };
        let buffer = self.device.create_buffer(&descriptor);
        self.check()?;
        self.bytes += size;
        Ok(buffer)
    }

    /// Writes words at a byte offset.
    pub fn write(&mut self, buffer: &wgpu::Buffer, offset: u64, words: &[u32]) {
        if words.is_empty() {
            return;
        }
        self.queue.write_buffer(buffer, offset, bytemuck::cast_slice(words));
        self.staged += words.len() as u64 * 4;
        if self.staged >= FLUSH_BYTES {
            self.staged = 0;
            self.queue.submit([]);
            // A failure here is reported by the next check.
            let _ = self.device.poll(wgpu::PollType::Poll);
        }
    }

    /// The pipeline of a kernel, made once for equal sources.
    pub fn pipeline(&mut self, kernel: &Kernel, bindings: &[Binding]) -> Result<Pipeline> {
        if let Some(pipeline) = self.pipelines.get(&kernel.source) {
            return Ok(pipeline.clone());
        }
        let module = self.module(kernel);
        let entries: Vec<_> = (0..).zip(bindings).map(|(number, binding)| layout_entry(number, *binding)).collect();
        let bindings = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(&kernel.name),
            entries: &entries,
        });
        let layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(&kernel.name),
            bind_group_layouts: &[Some(&bindings)],
            immediate_size: 0,
        });
        let compute = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&kernel.name),
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every kernel writes its workgroup memory before it reads it.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        self.check().map_err(|error| error.at(kernel.name.clone()))?;
        let pipeline = Pipeline { name: kernel.name.as_str().into(), compute, bindings };
        self.pipelines.insert(kernel.source.clone(), pipeline.clone());
        Ok(pipeline)
    }

    /// The shader of a kernel, without checks of indices where it runs on a GPU natively: they cost up to a fifth.
    #[allow(unsafe_code)]
    fn module(&self, kernel: &Kernel) -> wgpu::ShaderModule {
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(&kernel.name),
            source: wgpu::ShaderSource::Wgsl(kernel.source.as_str().into()),
        };
        if !self.trusts_kernels {
            return self.device.create_shader_module(descriptor);
        }
        // SAFETY: Every kernel is this crate's own text with constants from the shapes of the very buffers, or parts of
        // buffers, that it binds. An index is bounded by these constants, clamped, or guarded; positions and counts of tokens are checked
        // by `Model` before a submit, and a token's id is clamped where it is used. Every loop counts up to a bound.
        // The same texts run with all checks on software adapters in the tests.
        unsafe { self.device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
    }

    /// Binds buffers, or parts of them, in the order of the kernel's bindings.
    pub fn bind(&self, pipeline: &Pipeline, bound: &[wgpu::BufferBinding<'_>]) -> wgpu::BindGroup {
        let entries: Vec<_> = (0..)
            .zip(bound.iter().cloned())
            .map(|(binding, part)| wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(part) })
            .collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&pipeline.name),
            layout: &pipeline.bindings,
            entries: &entries,
        })
    }

    /// An encoder for one submit.
    pub fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("hanzo-edge") })
    }

    /// Submits what was recorded.
    pub fn submit(&mut self, encoder: wgpu::CommandEncoder) -> Result<()> {
        self.submit_numbered(encoder).map(|_| ())
    }

    /// Submits one pass.
    pub fn submit_pass(&mut self, record: impl FnOnce(&mut wgpu::ComputePass<'_>)) -> Result<()> {
        let mut encoder = self.encoder();
        record(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()));
        self.submit(encoder)
    }

    fn submit_numbered(&mut self, encoder: wgpu::CommandEncoder) -> Result<wgpu::SubmissionIndex> {
        self.staged = 0;
        let number = self.queue.submit([encoder.finish()]);
        self.check().map(|()| number)
    }

    /// Gives the time at which everything submitted so far was seen to be done.
    pub fn submitted_work(&self) -> oneshot::Receiver<f64> {
        let (sender, receiver) = oneshot::channel();
        let now_ms = self.now_ms;
        self.queue.on_submitted_work_done(move || {
            // The receiver is gone only when nobody waits any more.
            let _ = sender.send(now_ms());
        });
        receiver
    }

    /// Waits for what [`Gpu::submitted_work`] gave. Fails if something went wrong on the device meanwhile.
    pub async fn wait(&self, work: &mut oneshot::Receiver<f64>) -> Result<f64> {
        // Waits natively; a browser polls by itself.
        let polled = self.device.poll(wgpu::PollType::wait_indefinitely());
        let lost = || Error::device_lost("the GPU device did not finish its work").at(self.name.clone());
        let done = match polled {
            Ok(_) => work.await.map_err(|error| lost().because(error)),
            Err(error) => Err(lost().because(error)),
        };
        // What the device says of a fault tells more than that it did not finish.
        self.check().and(done)
    }

    /// Submits what was recorded, then reads `words` 4-byte words from the start of a buffer.
    pub async fn submit_and_read(
        &mut self,
        encoder: wgpu::CommandEncoder,
        buffer: &wgpu::Buffer,
        words: usize,
    ) -> Result<Vec<u32>> {
        let read = self.submit_and_copy(encoder, buffer, words)?;
        self.finish_read(read).await
    }

    /// Submits a copy of `words` 4-byte words from the start of a buffer. What is submitted until [`Gpu::finish_read`] does
    /// not hold it up.
    pub fn begin_read(&mut self, buffer: &wgpu::Buffer, words: usize) -> Result<Readback> {
        self.submit_and_copy(self.encoder(), buffer, words)
    }

    fn submit_and_copy(
        &mut self,
        mut encoder: wgpu::CommandEncoder,
        buffer: &wgpu::Buffer,
        words: usize,
    ) -> Result<Readback> {
        let bytes = words as u64 * 4;
        let staging = self.take_staging(bytes);
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, bytes);
        let submitted = self.submit_numbered(encoder)?;
        // Asked for at once: a browser may let it wait for all that was submitted before.
        let (sender, mapped) = oneshot::channel();
        staging.slice(..bytes).map_async(wgpu::MapMode::Read, move |result| {
            // The receiver is gone only when the caller gave up.
            let _ = sender.send(result);
        });
        Ok(Readback { staging, bytes, submitted, mapped })
    }

    /// Waits for the words.
    pub async fn finish_read(&mut self, mut readback: Readback) -> Result<Vec<u32>> {
        let words = self.read(&mut readback).await?;
        readback.staging.unmap();
        self.staging = Some(readback.staging);
        Ok(words)
    }

    /// Copies the readback buffer, which stays mapped.
    async fn read(&self, Readback { staging, bytes, submitted, mapped }: &mut Readback) -> Result<Vec<u32>> {
        // Waits natively; a browser polls by itself.
        let wait = wgpu::PollType::Wait { submission_index: Some(submitted.clone()), timeout: None };
        let polled = self.device.poll(wait);
        let mapped = mapped.await;
        if polled.is_err() || !matches!(mapped, Ok(Ok(()))) {
            // Brings the news that the device is lost, if it is; the check says whether.
            let _ = self.device.poll(wgpu::PollType::Poll);
        }
        self.check()?;
        let lost = || Error::device_lost("the GPU device gave no result").at(self.name.clone());
        polled.map_err(|error| lost().because(error))?;
        mapped.map_err(|error| lost().because(error))?.map_err(|error| lost().because(error))?;
        let view = staging.slice(..*bytes).get_mapped_range().map_err(|error| lost().because(error))?;
        Ok(bytemuck::pod_collect_to_vec(&view[..]))
    }

    /// The readback buffer, or a larger one when it is too small. Taken away, so that one that a failed or abandoned
    /// read left mapped is not used again.
    fn take_staging(&mut self, bytes: u64) -> wgpu::Buffer {
        if let Some(staging) = self.staging.take()
            && staging.size() >= bytes
        {
            return staging;
        }
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("staging"),
            size: bytes.next_multiple_of(256).max(256),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }
}

/// Fails when a buffer is larger than `limit`, which is a multiple of 256, so that rounding up stays within it.
pub fn check_size(label: &str, bytes: u64, limit: u64) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    let message = format!("expected a buffer of at most {limit} bytes, the device's limit, found {bytes}");
    Err(Error::limits(message).at(label))
}

/// The size of a buffer for so many bytes.
pub fn rounded(bytes: u64) -> u64 {
    bytes.next_multiple_of(16).max(16)
}

async fn request_adapter(instance: &wgpu::Instance, options: OpenOptions) -> Result<wgpu::Adapter> {
    let request = |force_fallback_adapter| wgpu::RequestAdapterOptions {
        power_preference: if options.high_performance {
            wgpu::PowerPreference::HighPerformance
        } else {
            wgpu::PowerPreference::None
        },
        force_fallback_adapter,
        ..Default::default()
    };
    let found = match instance.request_adapter(&request(false)).await {
        Err(_) if options.allow_fallback_adapter => instance.request_adapter(&request(true)).await,
        found => found,
    };
    found.map_err(|error| Error::not_found("expected a WebGPU, Vulkan or Metal adapter, found none").because(error))
}

/// Whether products of packed bytes are native. Metal's are made of scalar ones.
fn int8_pays(instance: &wgpu::Instance, backend: wgpu::Backend) -> bool {
    backend != wgpu::Backend::Metal
        && instance.wgsl_language_features().contains(wgpu::WgslLanguageFeatures::Packed4x8IntegerDotProduct)
}

/// Whether there are matrix units of the one kind that kernels are written for: 16 by 16 by 16, f16 with f32 sums, by
/// subgroups of 32.
fn offers_matrix(adapter: &wgpu::Adapter, info: &wgpu::AdapterInfo) -> bool {
    let needed = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX | wgpu::Features::SHADER_F16;
    let fits = |unit: &wgpu::CooperativeMatrixProperties| {
        [unit.m_size, unit.n_size, unit.k_size] == [16; 3]
            && unit.ab_type == wgpu::CooperativeScalarType::F16
            && unit.cr_type == wgpu::CooperativeScalarType::F32
    };
    adapter.features().contains(needed)
        && [info.subgroup_min_size, info.subgroup_max_size] == [32; 2]
        && adapter.cooperative_matrix_properties().iter().any(fits)
}

/// Leave to use matrix units, an experimental feature.
#[allow(unsafe_code)]
fn matrix_leave() -> wgpu::ExperimentalFeatures {
    // SAFETY: The token only acknowledges that such features may have faults. A kernel on matrix units is compared with
    // its reference on this device before a model runs it, and given up when it differs.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}

/// WebGPU's guaranteed limits, with what large models need raised to what the adapter offers, and the workgroup memory
/// that kernels for matrix units need.
fn limits(offered: &wgpu::Limits, matrix: bool) -> wgpu::Limits {
    let least = wgpu::Limits::defaults().max_compute_workgroup_storage_size;
    let workgroup_bytes = if matrix { MATRIX_WORKGROUP_BYTES } else { least };
    wgpu::Limits {
        max_compute_workgroup_storage_size: offered.max_compute_workgroup_storage_size.min(workgroup_bytes),
        max_storage_buffer_binding_size: offered.max_storage_buffer_binding_size,
        max_buffer_size: offered.max_buffer_size,
        max_storage_buffers_per_shader_stage: offered.max_storage_buffers_per_shader_stage.min(MOST_STORAGE_BUFFERS),
        ..wgpu::Limits::defaults().or_worse_values_from(offered)
    }
}

fn watch(device: &wgpu::Device, fault: &Fault, lost: &Fault) {
    let note = |fault: &Fault, kind: ErrorKind, message: String| {
        let mut fault = fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        fault.get_or_insert((kind, message));
    };
    let uncaptured = Arc::clone(fault);
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        let kind = match &error {
            wgpu::Error::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            _ => ErrorKind::Internal,
        };
        note(&uncaptured, kind, error.to_string());
    }));
    let lost = Arc::clone(lost);
    device.set_device_lost_callback(move |reason, message| {
        note(&lost, ErrorKind::DeviceLost, format!("the GPU device was lost ({reason:?}): {message}"));
    });
}

fn layout_entry(number: u32, binding: Binding) -> wgpu::BindGroupLayoutEntry {
    let ty = match binding.access {
        Access::Uniform => wgpu::BufferBindingType::Uniform,
        Access::Read => wgpu::BufferBindingType::Storage { read_only: true },
        Access::Write => wgpu::BufferBindingType::Storage { read_only: false },
    };
    wgpu::BindGroupLayoutEntry {
        binding: number,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}
