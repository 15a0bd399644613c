//! Runs a plan: one step after the other, over slots that are kept from one run to the next.

use super::clock::Clock;
use super::weights::Weights;
use crate::error::{Context, Error, Result};
use crate::graph::Graph;
use crate::kernels::{Compute, CpuCx, CpuInput, KvCache, Scratch};
use crate::plan::{Loc, Plan, Step};
use crate::tensor::DType;

/// What a run works on.
pub(super) struct Run<'a> {
    pub(super) graph: &'a Graph,
    pub(super) compute: &'a Compute,
    pub(super) weights: &'a Weights,
    pub(super) caches: &'a mut [KvCache],
    pub(super) slots: &'a mut Vec<Vec<f32>>,
    pub(super) scratch: &'a mut Scratch,
    pub(super) clock: &'a mut Clock,
}

impl Run<'_> {
    /// Runs every step for tokens at `position..` and copies the first output of the graph to `result`.
    pub(super) fn plan(&mut self, plan: &Plan, tokens: &[u32], position: usize, result: &mut Vec<f32>) -> Result<()> {
        if self.slots.len() < plan.slots.len() {
            self.slots.resize_with(plan.slots.len(), Vec::new);
        }
        for (slot, &len) in self.slots.iter_mut().zip(&plan.slots) {
            if slot.len() < len {
                slot.resize(len, 0.0);
            }
        }
        for step in &plan.steps {
            let node = self.graph.nodes.get(step.node).ok_or_else(|| missing("node"))?;
            let start = self.clock.now();
            self.step(step, plan.dims.rows, tokens, position).at(|| node.name.clone())?;
            if let Some(start) = start {
                let bytes = self.step_bytes(step, position + tokens.len());
                self.clock.record(node.op.name(), start, bytes);
            }
        }
        let (Some(Loc::Slot(slot)), Some(id)) = (plan.outputs.first(), self.graph.outputs.first()) else {
            return Err(Error::internal("the graph has no output that a step makes"));
        };
        let len = self.graph.fact(*id).len(plan.dims);
        let output = self.slots.get(*slot).and_then(|slot| slot.get(..len)).ok_or_else(|| missing("slot"))?;
        result.clear();
        result.extend_from_slice(output);
        Ok(())
    }

    /// Bytes of weights and cache that a step reads: of a table that ids look up only the rows taken.
    fn step_bytes(&self, step: &Step, n_keys: usize) -> u64 {
        let cache = self.graph.nodes.get(step.node).and_then(|node| node.op.cache());
        let cache = cache.and_then(|index| self.caches.get(index));
        let state = cache.map_or(0, |cache| cache.bytes() / cache.capacity().max(1) * n_keys);
        if step.inputs.contains(&Loc::Tokens) {
            let values: usize = step.output_shapes.iter().map(|shape| shape.iter().product::<usize>()).sum();
            return (4 * values) as u64;
        }
        let weights = step.inputs.iter().map(|loc| match *loc {
            Loc::Weight(index) => self.weights.input(index).map_or(0, |input| match input {
                CpuInput::Matrix(matrix) => matrix.bytes(),
                CpuInput::F32(values) => 4 * values.len(),
                CpuInput::U32(ids) => 4 * ids.len(),
            }),
            _ => 0,
        });
        (state + weights.sum::<usize>()) as u64
    }

    /// Runs one operation. Its output slots are taken out meanwhile, so that the others can be read.
    fn step(&mut self, step: &Step, rows: usize, tokens: &[u32], position: usize) -> Result<()> {
        let mut taken: Vec<Vec<f32>> = Vec::with_capacity(step.outputs.len());
        for &slot in &step.outputs {
            taken.push(std::mem::take(self.slots.get_mut(slot).ok_or_else(|| missing("slot"))?));
        }
        let done = self.call(step, (rows, tokens, position), &mut taken);
        for (&slot, values) in step.outputs.iter().zip(taken) {
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = values;
            }
        }
        done
    }

    fn call(
        &mut self,
        step: &Step,
        (rows, tokens, position): (usize, &[u32], usize),
        taken: &mut [Vec<f32>],
    ) -> Result<()> {
        let Run { graph, compute, weights, caches, slots, scratch, .. } = self;
        let op = &graph.nodes.get(step.node).ok_or_else(|| missing("node"))?.op;
        let mut inputs = Vec::with_capacity(step.inputs.len());
        for (&loc, shape) in step.inputs.iter().zip(&step.input_shapes) {
            inputs.push(match loc {
                Loc::Tokens => CpuInput::U32(tokens),
                Loc::Weight(index) => weights.input(index)?,
                Loc::Constant(index) => {
                    let constant = graph.constants.get(index).ok_or_else(|| missing("constant"))?;
                    match constant.dtype() {
                        DType::F32 => CpuInput::F32(constant.as_f32()?),
                        DType::U32 => CpuInput::U32(constant.as_u32()?),
                    }
                }
                Loc::Slot(index) => CpuInput::F32(part(slots.get(index), shape)?),
            });
        }
        let mut outputs = Vec::with_capacity(taken.len());
        for (slot, shape) in taken.iter_mut().zip(&step.output_shapes) {
            outputs.push(slot.get_mut(..shape.iter().product()).ok_or_else(|| missing("slot"))?);
        }
        op.cpu(&mut CpuCx {
            compute,
            position,
            tokens: tokens.len(),
            rows,
            inputs: &inputs,
            shapes: &step.input_shapes,
            outputs: &mut outputs,
            cache: op.cache().and_then(|index| caches.get_mut(index)),
            scratch,
        })
    }
}

/// The values of a shape at the start of a slot.
fn part<'a>(slot: Option<&'a Vec<f32>>, shape: &[usize]) -> Result<&'a [f32]> {
    slot.and_then(|slot| slot.get(..shape.iter().product())).ok_or_else(|| missing("slot"))
}

fn missing(what: &str) -> Error {
    Error::internal(format!("the plan names a {what} that is not there"))
}
