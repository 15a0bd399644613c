//! Backends: what runs a plan. Each has a folder; nothing outside it asks which one runs.

pub mod cpu;
pub mod reference;
#[cfg(test)]
mod samples;
pub mod sampling;
#[cfg(test)]
mod tests;
pub mod wgpu;

pub use crate::quant::KvType;
pub use wgpu::kernels as gpu_kernels;

use crate::error::Result;
use crate::graph::Graph;
use crate::quant::{BlockFormat, PackedLayout};
use crate::quantize::Activations;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// `Send` and `Sync` natively; nothing on the web, where GPU objects belong to one thread.
#[cfg(not(target_arch = "wasm32"))]
pub trait MaybeSend: Send + Sync {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + Sync + ?Sized> MaybeSend for T {}
/// `Send` and `Sync` natively; nothing on the web, where GPU objects belong to one thread.
#[cfg(target_arch = "wasm32")]
pub trait MaybeSend {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> MaybeSend for T {}

/// A boxed future, `Send` natively.
#[cfg(not(target_arch = "wasm32"))]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A boxed future, `Send` natively.
#[cfg(target_arch = "wasm32")]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What a backend is asked to build an [`Executable`] for.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    /// The optimized graph.
    pub graph: Arc<Graph>,
    /// How each of `graph.weights` will be stored (vectors: `F32`).
    pub layouts: Vec<PackedLayout>,
    /// Tokens that the key/value caches hold.
    pub capacity: usize,
    /// Element type of the caches.
    pub kv_type: KvType,
    /// How activations meet weights.
    pub activations: Activations,
}

/// Bytes held, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Packed weights and constants.
    pub weights_bytes: u64,
    /// Key/value caches, and the copies saved of them.
    pub kv_bytes: u64,
    /// Activation slots and staging.
    pub scratch_bytes: u64,
    /// Of all these, bytes on a GPU.
    pub gpu_bytes: u64,
}

impl MemoryUse {
    /// Bytes for all purposes.
    #[must_use]
    pub fn total(self) -> u64 {
        self.weights_bytes.saturating_add(self.kv_bytes).saturating_add(self.scratch_bytes)
    }
}

/// A check of one kernel against the reference at load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// The kernel's name with its variant.
    pub kernel: String,
    /// What was wrong; `None` when it agreed.
    pub error: Option<String>,
}

/// What a backend says of itself once a model is loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendReport {
    /// Device name, e.g. the adapter's or the instruction set.
    pub device: String,
    /// Threads that compute.
    pub threads: usize,
    /// Kernel used per class of weight or operation.
    pub variants: Vec<(String, String)>,
    /// Kernels checked at load.
    pub self_test: Vec<SelfTest>,
    /// GPU dispatches per decoded token; 0 on CPUs.
    pub dispatches_per_token: usize,
}

/// Where the time of a run went: one row a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelTime {
    /// The kernel's name with its variant.
    pub kernel: String,
    /// Launches.
    pub calls: u64,
    /// Microseconds in all.
    pub us: f64,
    /// Bytes of weights and state read or written in all.
    pub bytes: u64,
}

/// The row of a profile that tells how fast the memory gives weights when nothing is done with them.
pub const STREAM: &str = "stream";

/// How tokens are drawn on the device. What it cannot express (penalties, biases, masks, log-probabilities)
/// is sampled on the host from the logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceSampling {
    /// 0 takes the most likely token, the lowest id among equals.
    pub temperature: f32,
    /// Candidates kept, `1..=DEVICE_TOP_K`.
    pub top_k: u32,
    /// Least share of probability kept, at temperature 1 over the `top_k` candidates.
    pub top_p: f32,
    /// Candidates less likely than this share of the best are dropped.
    pub min_p: f32,
    /// Seed of the draws.
    pub seed: u32,
    /// Number of the first draw: draw `i` uses [`uniform`]`(seed, i)`.
    pub counter: u32,
}

/// How many tokens a device is to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// Tokens wanted now.
    pub now: usize,
    /// Whether more are likely to be wanted next, so that the device may begin with one.
    pub more: bool,
}

/// The most candidates that a device keeps.
pub const DEVICE_TOP_K: u32 = 64;

/// The draw of number `counter`: uniform in `[0, 1)` with 24 bits, the same on every backend.
/// Two rounds of the PCG-RXS-M-XS 32-bit hash (O'Neill, 2014; Jarzynski and Olano, 2020).
#[must_use]
pub fn uniform(seed: u32, counter: u32) -> f32 {
    let hash = |x: u32| {
        let state = x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
        (word >> 22) ^ word
    };
    (hash(seed ^ hash(counter)) >> 8) as f32 / 16_777_216.0
}

/// A loaded model on a device: weights, caches, compiled plans.
pub trait Executable: MaybeSend {
    /// Takes rows `first_row..` of weight `weight` in the file's format, packs them into the weight's layout (quantizing
    /// them anew where that is not the format's) and lets the bytes go.
    /// Parts come in order and start at multiples of 4 rows.
    fn write_weight(
        &mut self,
        weight: usize,
        first_row: usize,
        format: &'static BlockFormat,
        bytes: &[u8],
    ) -> Result<()>;

    /// Called once after the last weight: compiles, tests the kernels against the reference.
    fn finish(&mut self) -> BoxFuture<'_, Result<()>>;

    /// The most tokens of one [`Executable::forward`].
    fn max_tokens(&self) -> usize;

    /// Runs tokens at `position..`; their keys and values are in the caches afterwards,
    /// and the logits of the last token are held on the device.
    fn forward(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<()>>;

    /// The logits held since the last [`Executable::forward`] or [`Executable::decode`], `[vocab_size]`.
    fn logits(&mut self) -> BoxFuture<'_, Result<Vec<f32>>>;

    /// Runs tokens at `position..` and answers the logits of each, `[tokens, vocab_size]`.
    fn score(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>>;

    /// Runs tokens at `position..` and answers the states of each after the final norm, `[tokens, hidden_size]`: what
    /// logits are made from, without making them.
    fn hidden(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>>;

    /// Whether [`Executable::decode`] works here.
    fn samples(&self) -> bool {
        false
    }

    /// `steps.now` times: draws a token from the logits held, then runs it at the next position
    /// (the first one drawn is at `position`). Answers the tokens drawn.
    fn decode(&mut self, position: usize, steps: Steps, sampling: DeviceSampling) -> BoxFuture<'_, Result<Vec<u32>>> {
        let _ = (position, steps, sampling);
        Box::pin(async { Err(crate::error::Error::internal("this backend draws no tokens")) })
    }

    /// Bytes of a copy of the keys and values of the first `tokens` positions; 0 where none can be made.
    fn snapshot_bytes(&self, tokens: usize) -> u64;

    /// Copies the keys and values of the first `tokens` positions, of which there is one at least, to a place of the
    /// backend's own with the number `place`. What the place held before is gone, also when this fails.
    fn save(&mut self, place: usize, tokens: usize) -> BoxFuture<'_, Result<()>>;

    /// Makes the first `tokens` positions what they were when `place` was saved with as many or more. The logits held
    /// are those of no token then.
    fn restore(&mut self, place: usize, tokens: usize) -> BoxFuture<'_, Result<()>>;

    /// Frees what a place holds.
    fn discard(&mut self, place: usize);

    /// Bytes held now.
    fn memory(&self) -> MemoryUse;

    /// Device, variants, self-test.
    fn report(&self) -> BackendReport;

    /// Starts or stops measuring kernels; answers the times since the start, with a row [`STREAM`] where the memory
    /// could be measured.
    fn profile(&mut self, on: bool) -> BoxFuture<'_, Result<Vec<KernelTime>>> {
        let _ = on;
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// What is known of a machine before a device is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Machine {
    /// Its GPU, where there is one that may be used.
    pub gpu: Option<GpuLimits>,
    /// Bytes of memory, where that is told.
    pub memory_bytes: Option<u64>,
}

/// What a GPU offers, as far as it decides how much memory a model takes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuLimits {
    /// Bytes of the largest buffer that can be made and bound.
    pub buffer_bytes: u64,
    /// Storage buffers that one kernel may bind.
    pub storage_buffers: usize,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: usize,
    /// `f16` arithmetic in shaders.
    pub f16: bool,
    /// Products of packed bytes in shaders.
    pub int8: bool,
}

/// A row of the backend table.
pub struct BackendRow {
    /// The name users type.
    pub name: &'static str,
    /// What it is, for diagnostics and help.
    pub summary: &'static str,
    /// Whether it is chosen where the user names none.
    pub automatic: bool,
    /// The most bytes of weights and caches that it has room for on this platform, where that is known before it opens.
    pub most_bytes: Option<u64>,
    /// Opens the device and prepares for the model; fails with the reason why it cannot be used.
    pub open: fn(options: OpenOptions, request: LoadRequest) -> BoxFuture<'static, Result<Box<dyn Executable>>>,
    /// What a model will hold on such a machine once a long prompt was read, told without a device. Fails with the
    /// reason why the machine's limits do not allow it.
    pub estimate: fn(machine: &Machine, request: &LoadRequest) -> Result<MemoryUse>,
}

/// The user's choices for a device.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// CPU threads; the backend's default when `None`.
    pub threads: Option<usize>,
    /// Prefers the more powerful GPU where there are several.
    pub high_performance: bool,
    /// Accepts a software adapter.
    pub allow_fallback_adapter: bool,
    /// The platform's clock: milliseconds since any moment.
    pub now_ms: fn() -> f64,
}

impl Default for OpenOptions {
    /// The clock stands still, so that nothing is measured.
    fn default() -> Self {
        Self { threads: None, high_performance: false, allow_fallback_adapter: false, now_ms: || 0.0 }
    }
}

/// Every backend, the preferred first.
pub static BACKENDS: &[BackendRow] = &[
    BackendRow {
        name: "wgpu",
        summary: "compute shaders on a GPU: Vulkan and Metal, WebGPU in browsers",
        automatic: true,
        most_bytes: None,
        open: wgpu::open,
        estimate: wgpu::estimate,
    },
    BackendRow {
        name: "cpu",
        summary: "SIMD kernels over packed weights, on threads where there are",
        automatic: true,
        most_bytes: cpu::MOST_BYTES,
        open: cpu::open,
        estimate: cpu::estimate,
    },
    BackendRow {
        name: "reference",
        summary: "plain loops with f64 sums: the oracle of the tests, slow by design",
        automatic: false,
        most_bytes: None,
        open: reference::open,
        estimate: reference::estimate,
    },
];
