//! A plan on the device: every dispatch with its pipeline and bind group, made once and replayed.

use super::device::{Gpu, Pipeline};
use super::state::State;
use super::weights::{Placement, Weights};
use crate::backend::{KvType, LoadRequest};
use crate::error::{Context, Error, Result};
use crate::graph::{CacheSpec, Graph};
use crate::plan::{Loc, Plan};
use crate::shader::{Access, Caps, Launch, LaunchCx, Operand, Resource, WeightOperand};
use crate::tensor::Data;
use std::sync::Arc;

/// The most tokens of a program.
pub const MOST_TOKENS: usize = 512;
/// Ids of drawn tokens that the device keeps, in a ring.
pub const DRAWN: usize = 64;
/// Dispatches of a submit while the device waits for the first.
const PART: usize = 64;
/// What launches are described for: how weights lie, and what the caches and the device are like. No device is needed.
pub struct Target {
    /// How each of `Graph::weights` lies in memory.
    pub operands: Vec<WeightOperand>,
    /// Tokens that the caches hold.
    pub capacity: usize,
    pub kv_type: KvType,
    pub caps: Caps,
}

impl Target {
    /// Places the weights of a request on a device with these capabilities.
    pub fn new(request: &LoadRequest, caps: Caps) -> Result<(Self, Placement)> {
        let placement = Placement::new(&request.graph, &request.layouts, caps.binding_bytes)?;
        Ok((
            Self { operands: placement.operands()?, capacity: request.capacity, kv_type: request.kv_type, caps },
            placement,
        ))
    }
}

/// The buffers that every program of a model shares.
pub struct Shared {
    pub target: Target,
    pub weights: Weights,
    /// `Graph::constants` on the device.
    pub constants: Vec<wgpu::Buffer>,
    /// Keys and values of each cache.
    pub caches: Vec<[wgpu::Buffer; 2]>,
    pub state: wgpu::Buffer,
    pub tokens: wgpu::Buffer,
    pub drawn: wgpu::Buffer,
    /// Bytes of the caches.
    pub kv_bytes: u64,
}

impl Shared {
    /// Makes the buffers of weights, constants and caches, zeroed but for the constants.
    pub fn new(gpu: &mut Gpu, request: &LoadRequest) -> Result<Self> {
        let graph = &request.graph;
        let (target, placement) = Target::new(request, gpu.caps)?;
        let weights = Weights::new(gpu, placement, target.operands.clone())?;
        let none = wgpu::BufferUsages::empty();
        let mut constants = Vec::new();
        for tensor in &graph.constants {
            let words: &[u32] = match tensor.data() {
                Data::F32(values) => bytemuck::cast_slice(values),
                Data::U32(values) => values,
            };
            let buffer = gpu.buffer("constant", words.len() as u64 * 4, none)?;
            gpu.write(&buffer, 0, words);
            constants.push(buffer);
        }
        let before = gpu.bytes;
        let mut caches = Vec::new();
        for spec in &graph.caches {
            let bytes = cache_bytes(spec, &target)?;
            caches.push([gpu.buffer("keys", bytes, none)?, gpu.buffer("values", bytes, none)?]);
        }
        let kv_bytes = gpu.bytes - before;
        Ok(Self {
            weights,
            constants,
            caches,
            state: gpu.buffer("state", size_of::<State>() as u64, wgpu::BufferUsages::UNIFORM)?,
            tokens: gpu.buffer("tokens", MOST_TOKENS as u64 * 4, none)?,
            drawn: gpu.buffer("drawn", DRAWN as u64 * 4, none)?,
            kv_bytes,
            target,
        })
    }
}

/// Bytes of the keys, or of the values, of a cache. Counted in 64 bits: those of a browser's `usize` would wrap.
pub fn cache_bytes(spec: &CacheSpec, target: &Target) -> Result<u64> {
    let sizes = [spec.n_kv_heads, target.capacity, target.kv_type.row_bytes(spec.head_dim)];
    let bytes = sizes.iter().try_fold(1u64, |bytes, size| bytes.checked_mul(*size as u64));
    bytes.ok_or_else(|| {
        Error::limits(format!(
            "expected a cache of less than 2^64 bytes, found {} heads of {} for {} tokens",
            spec.n_kv_heads, spec.head_dim, target.capacity
        ))
    })
}

/// Activations and scratches: programs that use one pool do not run at the same time.
#[derive(Default)]
pub struct Pool {
    slots: Vec<wgpu::Buffer>,
    /// The graph's outputs: apart from the slots, so that they stay when another program runs.
    pub outputs: Vec<wgpu::Buffer>,
    scratches: Vec<wgpu::Buffer>,
}

/// Elements, of 4 bytes, of the buffers of a pool.
#[derive(Default)]
pub struct PoolSizes {
    slots: Vec<usize>,
    outputs: Vec<usize>,
    scratches: Vec<usize>,
}

/// A plan with its launches, before there are buffers.
pub struct Draft {
    pub plan: Plan,
    /// The launches of each step.
    launches: Vec<Vec<Launch>>,
}

/// One dispatch.
struct Command {
    pipeline: Pipeline,
    group: wgpu::BindGroup,
    workgroups: [u32; 3],
    /// Bytes of weights that it reads.
    bytes: u64,
}

/// A plan ready to run.
pub struct Program {
    /// Tokens it has room for.
    pub tokens: usize,
    commands: Vec<Command>,
}

impl Draft {
    /// Asks every operation for its launches.
    pub fn new(graph: &Graph, plan: Plan, target: &Target) -> Result<Self> {
        let mut launches = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let node = &graph.nodes[step.node];
            let operand = |loc: Option<&Loc>, shape: &Vec<usize>| -> Result<Operand> {
                let weight = match loc {
                    Some(Loc::Weight(weight)) => target.operands.get(*weight).cloned(),
                    _ => None,
                };
                Ok(Operand { shape: shape.clone(), weight })
            };
            let inputs = step.inputs.iter().zip(&step.input_shapes).map(|(loc, shape)| operand(Some(loc), shape));
            let outputs = step.output_shapes.iter().map(|shape| operand(None, shape));
            let cx = LaunchCx {
                tokens: plan.dims.tokens,
                rows: plan.dims.rows,
                capacity: target.capacity,
                kv_type: target.kv_type,
                caps: target.caps,
                inputs: &inputs.collect::<Result<Vec<_>>>()?,
                outputs: &outputs.collect::<Result<Vec<_>>>()?,
            };
            launches.push(node.op.gpu(&cx).at(|| node.name.clone())?);
        }
        Ok(Self { plan, launches })
    }

    /// The launches in running order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.launches.iter().flatten()
    }

    /// Names of the kernels, each once, in order of their first use.
    pub fn kernels(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for launch in self.launches.iter().flatten() {
            if !names.contains(&launch.kernel.name) {
                names.push(launch.kernel.name.clone());
            }
        }
        names
    }
}

impl PoolSizes {
    /// What all of these drafts need, and `extra` launches that use their outputs.
    pub fn new(drafts: &[Draft], extra: &[&[Launch]]) -> Self {
        let Self { mut slots, mut outputs, mut scratches } = Self::default();
        let grow = |sizes: &mut Vec<usize>, index: usize, len: usize| {
            sizes.resize(sizes.len().max(index + 1), 0);
            sizes[index] = sizes[index].max(len);
        };
        for draft in drafts {
            for (slot, len) in draft.plan.slots.iter().enumerate() {
                match output_of(&draft.plan, slot) {
                    Some(output) => grow(&mut outputs, output, *len),
                    None => grow(&mut slots, slot, *len),
                }
            }
        }
        let launches = drafts.iter().flat_map(|draft| &draft.launches).flatten();
        for launch in launches.chain(extra.iter().copied().flatten()) {
            for binding in &launch.bindings {
                if let Resource::Scratch { index, len } = binding.resource {
                    grow(&mut scratches, index, len);
                }
            }
        }
        Self { slots, outputs, scratches }
    }

    /// The size of every buffer.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().chain(&self.outputs).chain(&self.scratches).copied()
    }
}

impl Pool {
    /// Buffers for all of these drafts and for `extra` launches that use their outputs.
    pub fn new(gpu: &mut Gpu, drafts: &[Draft], extra: &[&[Launch]]) -> Result<Self> {
        let PoolSizes { slots, outputs, scratches } = PoolSizes::new(drafts, extra);
        let mut make = |label: &str, sizes: Vec<usize>| -> Result<Vec<wgpu::Buffer>> {
            sizes.into_iter().map(|len| gpu.buffer(label, len as u64 * 4, wgpu::BufferUsages::empty())).collect()
        };
        Ok(Self {
            slots: make("activations", slots)?,
            outputs: make("outputs", outputs)?,
            scratches: make("scratch", scratches)?,
        })
    }
}

/// Which of the plan's outputs a slot holds at the end.
fn output_of(plan: &Plan, slot: usize) -> Option<usize> {
    plan.outputs.iter().position(|output| *output == Loc::Slot(slot))
}

/// Resolves what the launches of one step bind.
struct Binder<'a> {
    shared: &'a Shared,
    pool: &'a Pool,
    plan: Option<&'a Plan>,
    inputs: &'a [Loc],
    outputs: &'a [usize],
    cache: Option<usize>,
}

impl<'a> Binder<'a> {
    fn binding(&self, resource: Resource) -> Result<wgpu::BufferBinding<'a>> {
        let cache = || {
            let cache = self.cache.and_then(|cache| self.shared.caches.get(cache));
            cache.ok_or_else(|| Error::internal("the operation has no cache"))
        };
        match resource {
            Resource::Input(index) => match self.inputs.get(index) {
                Some(loc) => self.loc(*loc, 0),
                None => Err(Error::internal(format!("there is no input {index}"))),
            },
            Resource::Weight { input, part } => match self.inputs.get(input) {
                Some(loc) => self.loc(*loc, part),
                None => Err(Error::internal(format!("there is no input {input}"))),
            },
            Resource::Output(index) => match self.outputs.get(index) {
                Some(slot) => self.slot(*slot).map(whole),
                None => Err(Error::internal(format!("there is no output {index}"))),
            },
            Resource::Scratch { index, .. } => found(&self.pool.scratches, index).map(whole),
            Resource::Keys => Ok(whole(&cache()?[0])),
            Resource::Values => Ok(whole(&cache()?[1])),
            Resource::State => Ok(whole(&self.shared.state)),
            Resource::Tokens => Ok(whole(&self.shared.tokens)),
            Resource::Drawn => Ok(whole(&self.shared.drawn)),
        }
    }

    fn loc(&self, loc: Loc, part: usize) -> Result<wgpu::BufferBinding<'a>> {
        match loc {
            Loc::Tokens => Ok(whole(&self.shared.tokens)),
            Loc::Weight(weight) => self.shared.weights.binding(weight, part),
            Loc::Constant(index) => found(&self.shared.constants, index).map(whole),
            Loc::Slot(slot) => self.slot(slot).map(whole),
        }
    }

    fn slot(&self, slot: usize) -> Result<&'a wgpu::Buffer> {
        match self.plan.map(|plan| output_of(plan, slot)) {
            Some(None) => found(&self.pool.slots, slot),
            Some(Some(output)) => found(&self.pool.outputs, output),
            // Without a plan, slots are the outputs themselves.
            None => found(&self.pool.outputs, slot),
        }
    }

    fn command(&self, gpu: &mut Gpu, launch: &Launch) -> Result<Command> {
        let pipeline = gpu.pipeline(&launch.kernel, &launch.bindings)?;
        let bound = launch.bindings.iter().map(|binding| self.binding(binding.resource)).collect::<Result<Vec<_>>>()?;
        debug_assert!(unaliased(launch, &bound), "{} writes a buffer that it binds twice", launch.kernel.name);
        let group = gpu.bind(&pipeline, &bound);
        Ok(Command { pipeline, group, workgroups: launch.workgroups, bytes: launch.weight_bytes })
    }
}

fn found(buffers: &[wgpu::Buffer], index: usize) -> Result<&wgpu::Buffer> {
    buffers.get(index).ok_or_else(|| Error::internal(format!("there is no buffer {index}")))
}

/// Whether no buffer that is written is bound a second time.
fn unaliased(launch: &Launch, bound: &[wgpu::BufferBinding<'_>]) -> bool {
    let written = launch.bindings.iter().zip(bound).enumerate().filter(|(_, (b, _))| b.access == Access::Write);
    written.into_iter().all(|(i, (_, a))| bound.iter().enumerate().all(|(j, b)| i == j || a.buffer != b.buffer))
}

fn whole(buffer: &wgpu::Buffer) -> wgpu::BufferBinding<'_> {
    buffer.as_entire_buffer_binding()
}

/// A few dispatches of a program, one after the other.
pub struct Part<'a>(&'a [Command]);

impl Part<'_> {
    /// Submits them.
    pub fn submit(&self, gpu: &mut Gpu) -> Result<()> {
        gpu.submit_pass(|pass| self.0.iter().for_each(|command| command.record(pass)))
    }
}

impl Program {
    /// Makes pipelines and bind groups of a draft.
    pub fn new(gpu: &mut Gpu, graph: &Graph, draft: &Draft, shared: &Shared, pool: &Pool) -> Result<Self> {
        let mut commands = Vec::new();
        for (step, launches) in draft.plan.steps.iter().zip(&draft.launches) {
            let node = &graph.nodes[step.node];
            let binder = Binder {
                shared,
                pool,
                plan: Some(&draft.plan),
                inputs: &step.inputs,
                outputs: &step.outputs,
                cache: node.op.cache(),
            };
            for launch in launches {
                commands.push(binder.command(gpu, launch).at(|| node.name.clone())?);
            }
        }
        Ok(Self { tokens: draft.plan.dims.tokens, commands })
    }

    /// Makes launches that read the pool's outputs (as inputs of the same number) ready to run.
    pub fn over_outputs(gpu: &mut Gpu, launches: &[Launch], shared: &Shared, pool: &Pool) -> Result<Self> {
        let inputs: Vec<Loc> = (0..pool.outputs.len()).map(Loc::Slot).collect();
        let binder = Binder { shared, pool, plan: None, inputs: &inputs, outputs: &[], cache: None };
        let commands = launches.iter().map(|launch| binder.command(gpu, launch)).collect::<Result<_>>()?;
        Ok(Self { tokens: 0, commands })
    }

    /// Bytes of weights times tokens of all dispatches with so many tokens. Weights that only the last token meets count as
    /// if all did.
    pub fn work(&self, tokens: usize) -> u64 {
        self.commands.iter().map(|command| command.bytes * tokens as u64).sum()
    }

    /// Submits every dispatch for a step of so many tokens, in as many submits as keep each at the device's pace.
    pub fn submit(&self, gpu: &mut Gpu, tokens: usize) -> Result<()> {
        let most = gpu.pace.submit_work();
        let mut rest = self.commands.as_slice();
        while !rest.is_empty() {
            let mut sum = 0;
            let fits = rest.iter().position(|command| {
                sum += command.bytes * tokens as u64;
                sum > most
            });
            let (now, later) = rest.split_at(fits.unwrap_or(rest.len()).max(1));
            Part(now).submit(gpu)?;
            rest = later;
        }
        Ok(())
    }

    /// The dispatches in runs that are recorded in no time, each for a submit of its own.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.commands.chunks(PART).map(Part)
    }

    /// Records every dispatch.
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        for command in &self.commands {
            command.record(pass);
        }
    }

    /// Records every dispatch but those of one kind.
    pub fn record_without(&self, kind: &Kind, pass: &mut wgpu::ComputePass<'_>) {
        self.commands.iter().filter(|command| command.kind() != *kind).for_each(|command| command.record(pass));
    }

    /// The kind of each dispatch.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        self.commands.iter().map(Command::kind)
    }

    /// Records one dispatch.
    pub fn record_one(&self, index: usize, pass: &mut wgpu::ComputePass<'_>) {
        if let Some(command) = self.commands.get(index) {
            command.record(pass);
        }
    }

    /// Dispatches of one run.
    pub fn len(&self) -> usize {
        self.commands.len()
    }
}

/// What is told apart in measuring: a kernel, and how many bytes of weights a dispatch of it reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub kernel: Arc<str>,
    pub bytes: u64,
}

impl Command {
    fn kind(&self) -> Kind {
        Kind { kernel: Arc::clone(&self.pipeline.name), bytes: self.bytes }
    }

    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline.compute);
        pass.set_bind_group(0, &self.group, &[]);
        let [x, y, z] = self.workgroups;
        pass.dispatch_workgroups(x, y, z);
    }
}
