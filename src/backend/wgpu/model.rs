//! A loaded model on the GPU: weights, caches, programs for a few sizes of step, sampling.

use super::check::self_test;
use super::decode::Drawing;
use super::device::Gpu;
use super::hidden::Hidden;
use super::profile::{self, Profile};
use super::program::{Draft, MOST_TOKENS, Pool, Program, Shared, Target};
use super::sample;
use super::snapshots::Snapshots;
use super::state::State;
use crate::backend::{
    BackendReport, BoxFuture, DeviceSampling, Executable, KernelTime, KvType, LoadRequest, MemoryUse, SelfTest, Steps,
};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::graph::{Dims, Graph};
use crate::plan::Plan;
use crate::quant::{BlockFormat, PackedLayout};
use crate::shader::Caps;
use futures::channel::oneshot;
use std::sync::Arc;

/// Sizes of steps for which programs are made; a step uses the smallest that has room.
const BUCKETS: [usize; 4] = [1, 16, 64, MOST_TOKENS];

/// The sizes for a device: where only few tokens pay, no more than these.
fn buckets(caps: &Caps) -> &'static [usize] {
    let end = BUCKETS.iter().position(|tokens| *tokens == caps.few_tokens).map_or(BUCKETS.len(), |last| last + 1);
    &BUCKETS[..end]
}

/// The sizes that a model has programs for.
pub fn sizes(target: &Target) -> impl Iterator<Item = usize> {
    let capacity = target.capacity.max(1);
    buckets(&target.caps).iter().copied().filter(move |tokens| *tokens == 1 || *tokens / 4 < capacity)
}

/// The programs that a model runs, before there are buffers.
pub fn drafts(graph: &Graph, target: &Target) -> Result<Vec<Draft>> {
    let draft = |tokens| Draft::new(graph, Plan::new(graph, Dims { tokens, rows: 1 })?, target);
    sizes(target).map(draft).collect()
}

/// Tokens that a graph's logits tell apart.
pub fn vocabulary(graph: &Graph) -> Result<usize> {
    let logits = graph.outputs.first().ok_or_else(|| Error::internal("the graph has no output"))?;
    Ok(graph.fact(*logits).width().unwrap_or(0))
}

/// Bytes of the logits of one pass of `score`.
const SCORE_BYTES: usize = 64 << 20;

/// What there is once the weights are complete.
pub struct Ready {
    pool: Pool,
    programs: Vec<Program>,
    greedy: Program,
    drawn: Program,
    kernels: Vec<String>,
    self_test: Vec<SelfTest>,
}

impl Ready {
    /// The programs that draw a token and that run it.
    pub fn decoding(&self, greedy: bool) -> Result<(&Program, &Program)> {
        let sampler = if greedy { &self.greedy } else { &self.drawn };
        Ok((sampler, self.programs.first().ok_or_else(not_ready)?))
    }
}

/// A program that keeps the logits of every token, with buffers of its own.
struct Scorer {
    pool: Pool,
    program: Program,
}

/// A step that the device may still be at.
struct InFlight {
    /// Gives the time of its end.
    end: oneshot::Receiver<f64>,
    begin: f64,
    /// Of a prompt, bytes of weights times tokens; else 0.
    work: u64,
}

pub struct Model {
    pub(super) gpu: Gpu,
    graph: Arc<Graph>,
    layouts: Vec<PackedLayout>,
    kv_type: KvType,
    pub(super) shared: Shared,
    vocabulary: usize,
    pub(super) ready: Option<Ready>,
    /// For few tokens and for many.
    scorers: [Option<Scorer>; 2],
    hidden: Option<Hidden>,
    snapshots: Snapshots,
    pub(super) profile: Option<Profile>,
    in_flight: Option<InFlight>,
    pub(super) drawing: Drawing,
}

impl Model {
    /// Makes the buffers; the weights follow.
    pub fn new(mut gpu: Gpu, request: LoadRequest) -> Result<Self> {
        let shared = Shared::new(&mut gpu, &request)?;
        let LoadRequest { graph, layouts, kv_type, .. } = request;
        let vocabulary = vocabulary(&graph)?;
        Ok(Self {
            gpu,
            graph,
            layouts,
            kv_type,
            shared,
            vocabulary,
            ready: None,
            scorers: [None, None],
            hidden: None,
            snapshots: Snapshots::default(),
            profile: None,
            in_flight: None,
            drawing: Drawing::default(),
        })
    }

    /// Loses the device.
    #[cfg(test)]
    pub fn lose_device(&self) {
        self.gpu.device.destroy();
    }

    fn draft(&self, tokens: usize, rows: usize) -> Result<Draft> {
        let plan = Plan::new(&self.graph, Dims { tokens, rows })?;
        Draft::new(&self.graph, plan, &self.shared.target)
    }

    /// Makes everything ready. Where the device computes a kernel wrongly or refuses it, does without the capability that
    /// the kernel uses, and says so in the self-test.
    async fn prepare(&mut self) -> Result<()> {
        let mut given_up = Vec::new();
        loop {
            let error = match self.try_prepare().await {
                Ok(mut ready) => {
                    ready.self_test.extend(given_up);
                    self.ready = Some(ready);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Internal => error,
                Err(error) => return Err(error),
            };
            let Some((caps, without)) = self.gpu.caps.without(&error.to_string()) else { return Err(error) };
            given_up.push(SelfTest { kernel: without.to_owned(), error: Some(error.to_string()) });
            self.gpu.caps = caps;
            self.shared.target.caps = caps;
        }
    }

    async fn try_prepare(&mut self) -> Result<Ready> {
        let self_test = self_test(&mut self.gpu, &self.graph, &self.layouts, self.kv_type).await?;
        let drafts = drafts(&self.graph, &self.shared.target)?;
        let greedy = sample::greedy(self.vocabulary, &self.gpu.caps)?;
        let drawn = sample::drawn(self.vocabulary, &self.gpu.caps)?;
        let pool = Pool::new(&mut self.gpu, &drafts, &[&greedy, &drawn])?;
        let gpu = &mut self.gpu;
        let programs = drafts.iter().map(|draft| Program::new(gpu, &self.graph, draft, &self.shared, &pool));
        let programs = programs.collect::<Result<Vec<_>>>()?;
        let greedy = Program::over_outputs(gpu, &greedy, &self.shared, &pool)?;
        let drawn = Program::over_outputs(gpu, &drawn, &self.shared, &pool)?;
        let mut kernels: Vec<String> = Vec::new();
        for name in drafts.iter().flat_map(Draft::kernels) {
            if !kernels.contains(&name) {
                kernels.push(name);
            }
        }
        // One round trip, so that what a browser reports late is known now.
        let encoder = gpu.encoder();
        gpu.submit_and_read(encoder, &self.shared.state, 1).await?;
        Ok(Ready { pool, programs, greedy, drawn, kernels, self_test })
    }

    pub(super) fn check_range(&self, position: usize, tokens: usize) -> Result<()> {
        let end = position.checked_add(tokens);
        if tokens == 0 || end.is_none_or(|end| end > self.shared.target.capacity) {
            return Err(Error::context_overflow(format!(
                "expected 1 to {} tokens, found {tokens} at position {position}",
                self.shared.target.capacity
            )));
        }
        Ok(())
    }

    fn write_step(&mut self, tokens: &[u32], position: usize) {
        self.drawing.stop();
        self.gpu.write(&self.shared.tokens, 0, tokens);
        self.gpu.write(&self.shared.state, 0, State::forward(position, tokens.len()).words());
    }

    pub(super) async fn run_forward(&mut self, tokens: &[u32], position: usize) -> Result<()> {
        self.check_range(position, tokens.len())?;
        // One step at a time, so that the chunks of a long prompt do not queue up beyond an abort.
        if let Some(step) = &mut self.in_flight {
            let ended = self.gpu.wait(&mut step.end).await;
            let took = ended.as_ref().map_or(0.0, |end| end - step.begin);
            self.gpu.pace.measured(step.work, took);
            self.in_flight = None;
            ended?;
        }
        self.write_step(tokens, position);
        let ready = self.ready.as_ref().ok_or_else(not_ready)?;
        let program = ready.programs.iter().find(|program| program.tokens >= tokens.len());
        let program = program.ok_or_else(|| {
            Error::internal(format!("expected at most {} tokens, found {}", self.max_tokens(), tokens.len()))
        })?;
        if let Some(profile) = &mut self.profile {
            profile.run_step(&mut self.gpu, program).await?;
            self.drawing.settle();
            return Ok(());
        }
        let begin = (self.gpu.now_ms)();
        program.submit(&mut self.gpu, tokens.len())?;
        self.drawing.settle();
        // A single token is bound by memory and tells nothing of prompts.
        let work = if tokens.len() > 1 { program.work(tokens.len()) } else { 0 };
        self.in_flight = Some(InFlight { end: self.gpu.submitted_work(), begin, work });
        Ok(())
    }

    async fn read_logits(&mut self) -> Result<Vec<f32>> {
        self.hold_logits().await?;
        let ready = self.ready.as_ref().ok_or_else(not_ready)?;
        let logits = ready.pool.outputs.first().ok_or_else(not_ready)?.clone();
        let encoder = self.gpu.encoder();
        let words = self.gpu.submit_and_read(encoder, &logits, self.vocabulary).await?;
        Ok(words.into_iter().map(f32::from_bits).collect())
    }

    /// Which of the scorers fits `tokens` tokens, made when it is not there yet.
    fn scorer(&mut self, tokens: usize) -> Result<usize> {
        let sizes = buckets(&self.gpu.caps);
        let few = sizes.get(1).copied().unwrap_or(1);
        let index = usize::from(tokens > few);
        if self.scorers[index].is_none() {
            let fits = SCORE_BYTES.min(usize::try_from(self.gpu.buffer_bytes).unwrap_or(SCORE_BYTES));
            let most = if index == 0 { few } else { sizes.iter().copied().max().unwrap_or(1) };
            let rows = (fits / (self.vocabulary * 4).max(1)).clamp(1, most);
            let draft = self.draft(rows, rows)?;
            let pool = Pool::new(&mut self.gpu, std::slice::from_ref(&draft), &[])?;
            let program = Program::new(&mut self.gpu, &self.graph, &draft, &self.shared, &pool)?;
            self.scorers[index] = Some(Scorer { pool, program });
        }
        Ok(index)
    }

    async fn run_score(&mut self, tokens: &[u32], position: usize) -> Result<Vec<f32>> {
        self.check_range(position, tokens.len())?;
        self.drawing.stop();
        let index = self.scorer(tokens.len())?;
        let mut scores = Vec::with_capacity(tokens.len() * self.vocabulary);
        let mut done = 0;
        while let Some(chunk) = tokens.get(done..).filter(|rest| !rest.is_empty()) {
            let scorer = self.scorers[index].as_ref().ok_or_else(not_ready)?;
            let chunk = &chunk[..chunk.len().min(scorer.program.tokens)];
            let logits = scorer.pool.outputs.first().ok_or_else(not_ready)?.clone();
            self.gpu.write(&self.shared.tokens, 0, chunk);
            self.gpu.write(&self.shared.state, 0, State::forward(position + done, chunk.len()).words());
            scorer.program.submit(&mut self.gpu, chunk.len())?;
            let encoder = self.gpu.encoder();
            let words = self.gpu.submit_and_read(encoder, &logits, chunk.len() * self.vocabulary).await?;
            scores.extend(words.into_iter().map(f32::from_bits));
            done += chunk.len();
        }
        Ok(scores)
    }

    async fn run_hidden(&mut self, tokens: &[u32], position: usize) -> Result<Vec<f32>> {
        self.check_range(position, tokens.len())?;
        self.drawing.stop();
        if self.hidden.is_none() {
            let graph = Arc::clone(self.graph.hidden()?);
            let (layouts, kv_type) = (&self.layouts, self.kv_type);
            self.hidden = Some(Hidden::new(&mut self.gpu, &graph, &self.shared, (layouts, kv_type)).await?);
        }
        let hidden = self.hidden.as_ref().ok_or_else(not_ready)?;
        hidden.run(&mut self.gpu, &self.shared, tokens, position).await
    }
}

pub fn not_ready() -> Error {
    Error::internal("the model is used before its weights are complete")
}

impl Executable for Model {
    fn write_weight(
        &mut self,
        weight: usize,
        first_row: usize,
        format: &'static BlockFormat,
        bytes: &[u8],
    ) -> Result<()> {
        let spec = self.graph.weights.get(weight).ok_or_else(|| Error::internal("there is no such weight"))?;
        let row_bytes = spec.columns / format.block_len.max(1) * format.block_bytes;
        let rows = bytes.len() / row_bytes.max(1);
        if !first_row.is_multiple_of(4) || first_row + rows > spec.rows {
            return Err(
                Error::internal("a weight's parts must start at multiples of 4 rows, within it").at(spec.name.clone())
            );
        }
        let weights = &self.shared.weights;
        weights
            .write(&mut self.gpu, (weight, first_row), (rows, spec.columns), (format, bytes))
            .at(|| spec.name.clone())?;
        self.gpu.check()
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.prepare())
    }

    fn max_tokens(&self) -> usize {
        let ready = self.ready.as_ref();
        ready.and_then(|ready| ready.programs.iter().map(|program| program.tokens).max()).unwrap_or(1)
    }

    fn forward(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<()>> {
        let tokens = tokens.to_vec();
        Box::pin(async move { self.run_forward(&tokens, position).await })
    }

    fn logits(&mut self) -> BoxFuture<'_, Result<Vec<f32>>> {
        Box::pin(self.read_logits())
    }

    fn score(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>> {
        let tokens = tokens.to_vec();
        Box::pin(async move { self.run_score(&tokens, position).await })
    }

    fn hidden(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>> {
        let tokens = tokens.to_vec();
        Box::pin(async move { self.run_hidden(&tokens, position).await })
    }

    fn samples(&self) -> bool {
        true
    }

    fn decode(&mut self, position: usize, steps: Steps, sampling: DeviceSampling) -> BoxFuture<'_, Result<Vec<u32>>> {
        Box::pin(self.run_decode(position, steps, sampling))
    }

    fn profile(&mut self, on: bool) -> BoxFuture<'_, Result<Vec<KernelTime>>> {
        Box::pin(async move {
            let times = self.profile.take().map(Profile::finish).unwrap_or_default();
            self.hold_logits().await?;
            if on {
                profile::supported(&self.gpu)?;
                self.profile = Some(Profile::new(&mut self.gpu, &self.shared.weights).await?);
            }
            Ok(times)
        })
    }

    fn snapshot_bytes(&self, tokens: usize) -> u64 {
        Snapshots::bytes_of(&self.shared, &self.graph.caches, tokens)
    }

    fn save(&mut self, place: usize, tokens: usize) -> BoxFuture<'_, Result<()>> {
        let saving = self.snapshots.save(&mut self.gpu, &self.shared, &self.graph.caches, (place, tokens));
        Box::pin(saving)
    }

    fn restore(&mut self, place: usize, tokens: usize) -> BoxFuture<'_, Result<()>> {
        self.drawing.settle();
        let done = self.snapshots.restore(&mut self.gpu, &self.shared, &self.graph.caches, (place, tokens));
        Box::pin(async move { done })
    }

    fn discard(&mut self, place: usize) {
        self.snapshots.discard(&mut self.gpu, place);
    }

    fn memory(&self) -> MemoryUse {
        let weights_bytes = self.shared.weights.bytes;
        let kv_bytes = self.shared.kv_bytes + self.snapshots.bytes;
        MemoryUse {
            weights_bytes,
            kv_bytes,
            scratch_bytes: self.gpu.bytes - weights_bytes - kv_bytes,
            gpu_bytes: self.gpu.bytes,
        }
    }

    fn report(&self) -> BackendReport {
        let mut report = BackendReport { device: self.gpu.name.clone(), ..BackendReport::default() };
        if let Some(ready) = &self.ready {
            report.variants = ready.kernels.iter().map(|kernel| variant(kernel)).collect();
            report.self_test.clone_from(&ready.self_test);
            report.dispatches_per_token = ready.programs.first().map_or(0, Program::len) + ready.greedy.len();
        }
        report
    }
}

/// A kernel's name as (kernel, variant).
fn variant(kernel: &str) -> (String, String) {
    let (file, variant) = kernel.split_once(' ').unwrap_or((kernel, ""));
    (file.to_owned(), variant.to_owned())
}
