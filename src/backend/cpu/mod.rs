//! The CPU backend: the plan's steps one after the other, each operation over packed weights with the kernels of the
//! processor. Knows operators only by their trait and formats only by their table row.

mod clock;
mod estimate;
mod run;
#[cfg(test)]
mod tests;
mod weights;

use super::{BackendReport, BoxFuture, Executable, KernelTime, LoadRequest, MemoryUse, OpenOptions, SelfTest};
use crate::error::{Context, Error, Result};
use crate::graph::{Dims, Graph};
use crate::kernels::{Compute, Kernels, KvCache, Scratch, self_test};
use crate::plan::Plan;
use crate::quant::BlockFormat;
use crate::quantize::Activations;
use clock::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;
use weights::Weights;

pub use estimate::estimate;

/// Where addresses have 32 bits: 4 GiB less what the module itself, activations and the tokenizer take.
pub(super) const MOST_BYTES: Option<u64> = if cfg!(target_pointer_width = "32") { Some(3584 << 20) } else { None };
/// Tokens of one forward: enough rows that unpacking weights costs little, few enough to stay in the caches.
const MAX_TOKENS: usize = 256;
/// Threads by default; beyond these the memory of small machines is busy.
const DEFAULT_THREADS: usize = 8;
/// Plans kept: that of decoding, those of the last prompts and of guesses of a few lengths.
const MAX_PLANS: usize = 8;

/// A model in packed weights.
pub struct Cpu {
    graph: Arc<Graph>,
    compute: Compute,
    weights: Weights,
    caches: Vec<KvCache>,
    /// Copies of the beginnings of all caches, by place.
    snapshots: BTreeMap<usize, Vec<KvCache>>,
    capacity: usize,
    plans: Vec<Arc<Plan>>,
    slots: Vec<Vec<f32>>,
    scratch: Scratch,
    logits: Vec<f32>,
    tests: Vec<SelfTest>,
    clock: Clock,
    activations: Activations,
}

/// Opens the CPU backend.
pub fn open(options: OpenOptions, request: LoadRequest) -> BoxFuture<'static, Result<Box<dyn Executable>>> {
    Box::pin(async move { Ok(Box::new(Cpu::new(options, &request)?) as Box<dyn Executable>) })
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(DEFAULT_THREADS))
}

impl Cpu {
    fn new(options: OpenOptions, request: &LoadRequest) -> Result<Self> {
        let graph = Arc::clone(&request.graph);
        let caches = graph
            .caches
            .iter()
            .map(|spec| KvCache::new(spec.n_kv_heads, spec.head_dim, request.capacity, request.kv_type));
        Ok(Self {
            compute: Compute::new(options.threads.unwrap_or_else(default_threads))?,
            weights: Weights::new(&graph, &request.layouts)?,
            caches: caches.collect::<Result<_>>()?,
            snapshots: BTreeMap::new(),
            capacity: request.capacity,
            plans: Vec::new(),
            slots: Vec::new(),
            scratch: Scratch::default(),
            logits: Vec::new(),
            tests: Vec::new(),
            clock: Clock::default(),
            activations: request.activations,
            graph,
        })
    }

    /// The plan for these sizes, made when it is not at hand.
    fn plan(&mut self, dims: Dims) -> Result<Arc<Plan>> {
        if let Some(plan) = self.plans.iter().find(|plan| plan.dims == dims) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(Plan::new(&self.graph, dims)?);
        if self.plans.len() == MAX_PLANS {
            // The oldest that is not of decoding.
            let oldest = self.plans.iter().position(|plan| plan.dims.tokens > 1).unwrap_or(0);
            self.plans.remove(oldest);
        }
        self.plans.push(Arc::clone(&plan));
        Ok(plan)
    }

    fn check_range(&self, tokens: &[u32], position: usize) -> Result<()> {
        let end = position.saturating_add(tokens.len());
        if tokens.is_empty() || end > self.capacity {
            return Err(Error::context_overflow(format!("expected 1 to {} tokens, found {end}", self.capacity)));
        }
        Ok(())
    }

    /// Leaves the logits of the last `rows` tokens in `self.logits`.
    fn step(&mut self, tokens: &[u32], position: usize, rows: usize) -> Result<()> {
        self.check_range(tokens, position)?;
        let plan = self.plan(Dims { tokens: tokens.len(), rows })?;
        let (graph, mut logits) = (Arc::clone(&self.graph), std::mem::take(&mut self.logits));
        let done = self.run(&graph, &plan, (tokens, position), &mut logits);
        self.logits = logits;
        done
    }

    fn states(&mut self, tokens: &[u32], position: usize) -> Result<Vec<f32>> {
        self.check_range(tokens, position)?;
        let graph = Arc::clone(self.graph.hidden()?);
        // Texts to embed have every length, and a plan is made in less time than one token takes.
        let plan = Plan::new(&graph, Dims { tokens: tokens.len(), rows: tokens.len() })?;
        let mut states = Vec::new();
        self.run(&graph, &plan, (tokens, position), &mut states)?;
        Ok(states)
    }

    /// Runs a plan of `graph`, whose first output goes to `output`.
    fn run(
        &mut self,
        graph: &Graph,
        plan: &Plan,
        (tokens, position): (&[u32], usize),
        output: &mut Vec<f32>,
    ) -> Result<()> {
        let mut run = run::Run {
            graph,
            compute: &self.compute,
            weights: &self.weights,
            caches: &mut self.caches,
            slots: &mut self.slots,
            scratch: &mut self.scratch,
            clock: &mut self.clock,
        };
        run.plan(plan, tokens, position, output)
    }

    fn copy_out(&mut self, place: usize, tokens: usize) -> Result<()> {
        self.snapshots.remove(&place);
        let copies = self.caches.iter().map(|cache| cache.prefix(tokens)).collect::<Result<Vec<_>>>()?;
        self.snapshots.insert(place, copies);
        Ok(())
    }

    fn copy_in(&mut self, place: usize, tokens: usize) -> Result<()> {
        let copies =
            self.snapshots.get(&place).ok_or_else(|| Error::internal(format!("nothing was saved at {place}")))?;
        self.caches.iter_mut().zip(copies).try_for_each(|(cache, copy)| cache.copy_from(copy, tokens))
    }

    /// Makes the weights ready, and the kernels known to be right.
    fn complete(&mut self) -> Result<()> {
        self.weights.finish(&self.graph)?;
        self.test_kernels()?;
        match self.activations {
            Activations::Blocks => Ok(()),
            Activations::Tensor => self.weights.sum_rows(&self.compute),
        }
    }

    /// Checks the kernels of each layout in use, and steps down to simpler ones until all are right.
    fn test_kernels(&mut self) -> Result<()> {
        let threads = self.compute.pool().threads();
        let matrices = self.weights.one_of_each_layout();
        for kernels in Kernels::available() {
            if kernels.name() != self.compute.kernels().name() {
                self.compute = Compute::with_kernels(kernels, threads)?;
            }
            let mut sound = true;
            for matrix in &matrices {
                let error = self_test(&self.compute, matrix).err().map(|error| error.to_string());
                sound &= error.is_none();
                let kernel = format!("matmul/{}/{}", kernels.name(), matrix.layout().name());
                self.tests.push(SelfTest { kernel, error });
            }
            if sound {
                return Ok(());
            }
        }
        Err(Error::internal("no CPU kernels multiply rightly on this processor"))
    }
}

impl Executable for Cpu {
    fn write_weight(
        &mut self,
        weight: usize,
        first_row: usize,
        format: &'static BlockFormat,
        bytes: &[u8],
    ) -> Result<()> {
        let spec =
            self.graph.weights.get(weight).ok_or_else(|| Error::internal(format!("there is no weight {weight}")))?;
        self.weights.write(weight, spec, (first_row, format), bytes).at(|| spec.name.clone())
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<()>> {
        let done = self.complete();
        Box::pin(async move { done })
    }

    fn max_tokens(&self) -> usize {
        MAX_TOKENS
    }

    fn forward(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<()>> {
        let done = self.step(tokens, position, 1);
        Box::pin(async move { done })
    }

    fn logits(&mut self) -> BoxFuture<'_, Result<Vec<f32>>> {
        Box::pin(async { Ok(self.logits.clone()) })
    }

    fn score(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>> {
        let done = self.step(tokens, position, tokens.len());
        Box::pin(async move { done.map(|()| std::mem::take(&mut self.logits)) })
    }

    fn hidden(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>> {
        let states = self.states(tokens, position);
        Box::pin(async { states })
    }

    fn snapshot_bytes(&self, tokens: usize) -> u64 {
        self.caches.iter().map(|cache| (cache.bytes() / cache.capacity().max(1) * tokens) as u64).sum()
    }

    fn save(&mut self, place: usize, tokens: usize) -> BoxFuture<'_, Result<()>> {
        let done = self.copy_out(place, tokens);
        Box::pin(async move { done })
    }

    fn restore(&mut self, place: usize, tokens: usize) -> BoxFuture<'_, Result<()>> {
        let done = self.copy_in(place, tokens);
        Box::pin(async move { done })
    }

    fn discard(&mut self, place: usize) {
        self.snapshots.remove(&place);
    }

    fn memory(&self) -> MemoryUse {
        let slots: usize = self.slots.iter().map(|slot| 4 * slot.capacity()).sum();
        let constants = self.graph.constants.iter().map(|tensor| 4 * tensor.shape().iter().product::<usize>());
        MemoryUse {
            weights_bytes: (self.weights.bytes() + constants.sum::<usize>()) as u64,
            kv_bytes: self.caches.iter().chain(self.snapshots.values().flatten()).map(KvCache::bytes).sum::<usize>()
                as u64,
            scratch_bytes: (slots + self.scratch.bytes() + 4 * self.logits.capacity()) as u64,
            gpu_bytes: 0,
        }
    }

    fn report(&self) -> BackendReport {
        let table = self.compute.kernels();
        let kernels = table.name();
        let mut variants = Vec::new();
        for matrix in self.weights.one_of_each_layout() {
            let inputs = match table.activation_bits(matrix.layout()) {
                32 => "f32".to_owned(),
                _ if self.activations == Activations::Tensor => "uint8 whole-row".to_owned(),
                bits => format!("int{bits}"),
            };
            variants.push((matrix.layout().name(), format!("matmul/{kernels}, {inputs} activations")));
        }
        BackendReport {
            device: format!("CPU, {kernels}"),
            threads: self.compute.pool().threads(),
            variants,
            self_test: self.tests.clone(),
            dispatches_per_token: 0,
        }
    }

    fn profile(&mut self, on: bool) -> BoxFuture<'_, Result<Vec<KernelTime>>> {
        let times = self.clock.switch(on);
        Box::pin(async move { Ok(times) })
    }
}
