//! From a graph and the sizes of a step to what runs in which order over which buffers. Pure: equal inputs give
//! an equal plan. Knows no device.

use crate::error::{Error, Result};
use crate::graph::{Dims, Graph, Origin, ValueId};

/// Where an operand lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loc {
    /// The token ids of the step.
    Tokens,
    /// `Graph::weights[i]`.
    Weight(usize),
    /// `Graph::constants[i]`.
    Constant(usize),
    /// A reused activation buffer: `Plan::slots[i]`. Slots are separate buffers, since WebGPU refuses
    /// to bind one buffer for reading and for writing in one dispatch.
    Slot(usize),
}

/// One operation of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Index into `Graph::nodes`.
    pub node: usize,
    /// Where each input lives.
    pub inputs: Vec<Loc>,
    /// Shapes of the inputs.
    pub input_shapes: Vec<Vec<usize>>,
    /// The slot of each output.
    pub outputs: Vec<usize>,
    /// Shapes of the outputs.
    pub output_shapes: Vec<Vec<usize>>,
}

/// Operations in order, over slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The sizes it was made for.
    pub dims: Dims,
    /// Operations in running order.
    pub steps: Vec<Step>,
    /// Elements (of 4 bytes) of each slot.
    pub slots: Vec<usize>,
    /// Where the graph's outputs are at the end.
    pub outputs: Vec<Loc>,
}

impl Plan {
    /// Plans `graph` for a step of these sizes. A slot is free again after its last reader;
    /// an operation never writes a slot that it reads.
    pub fn new(graph: &Graph, dims: Dims) -> Result<Self> {
        let mut slots = Slots::new(graph);
        let mut steps = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            if let ([input], [output]) = (&node.inputs[..], &node.outputs[..])
                && node.op.keeps(dims)
                && slots.hand_over(*input, *output, index)
            {
                continue;
            }
            let outputs =
                node.outputs.iter().map(|output| slots.take(graph.fact(*output).len(dims), *output)).collect();
            let inputs = node.inputs.iter().map(|input| slots.loc(graph, *input)).collect::<Result<_>>()?;
            let shapes = |ids: &[ValueId]| ids.iter().map(|id| graph.fact(*id).resolve(dims)).collect();
            steps.push(Step {
                node: index,
                inputs,
                input_shapes: shapes(&node.inputs),
                outputs,
                output_shapes: shapes(&node.outputs),
            });
            for value in node.inputs.iter().chain(&node.outputs) {
                slots.release(*value, index);
            }
        }
        let outputs = graph.outputs.iter().map(|output| slots.loc(graph, *output)).collect::<Result<_>>()?;
        Ok(Self { dims, steps, slots: slots.sizes, outputs })
    }

    /// Bytes of all slots.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.slots.iter().sum::<usize>() * 4
    }
}

/// The slots in use while planning.
struct Slots {
    sizes: Vec<usize>,
    free: Vec<usize>,
    of_value: Vec<Option<usize>>,
    /// Index of the last node that reads a value; graph outputs are read after every node.
    last_reader: Vec<usize>,
}

impl Slots {
    fn new(graph: &Graph) -> Self {
        let mut last_reader = vec![0; graph.values.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            for value in node.outputs.iter().chain(&node.inputs) {
                last_reader[value.0] = index;
            }
        }
        for output in &graph.outputs {
            last_reader[output.0] = usize::MAX;
        }
        Self { sizes: Vec::new(), free: Vec::new(), of_value: vec![None; graph.values.len()], last_reader }
    }

    /// The free slot that fits best, grown where none is large enough, or a new one.
    fn take(&mut self, len: usize, value: ValueId) -> usize {
        let waste = |slot: &usize| {
            let size = self.sizes[*slot];
            if size >= len { (0, size - len) } else { (1, len - size) }
        };
        let best = (0..self.free.len()).min_by_key(|i| waste(&self.free[*i]));
        let slot = if let Some(best) = best {
            let slot = self.free.swap_remove(best);
            self.sizes[slot] = self.sizes[slot].max(len);
            slot
        } else {
            self.sizes.push(len);
            self.sizes.len() - 1
        };
        self.of_value[value.0] = Some(slot);
        slot
    }

    /// Makes the slot of `input` that of `output`, where node number `node` is the last to read it.
    fn hand_over(&mut self, input: ValueId, output: ValueId, node: usize) -> bool {
        let slot = self.of_value[input.0].filter(|_| self.last_reader[input.0] == node);
        if slot.is_some() {
            (self.of_value[input.0], self.of_value[output.0]) = (None, slot);
            self.release(output, node);
        }
        slot.is_some()
    }

    fn release(&mut self, value: ValueId, node: usize) {
        if self.last_reader[value.0] == node
            && let Some(slot) = self.of_value[value.0].take()
        {
            self.free.push(slot);
        }
    }

    fn loc(&self, graph: &Graph, value: ValueId) -> Result<Loc> {
        match graph.values[value.0].origin {
            Origin::Tokens => Ok(Loc::Tokens),
            Origin::Weight(index) => Ok(Loc::Weight(index)),
            Origin::Constant(index) => Ok(Loc::Constant(index)),
            Origin::Node => self.of_value[value.0].map(Loc::Slot).ok_or_else(|| {
                Error::internal(format!("value {} is read before it is made", graph.values[value.0].name))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::optimize::{optimize, tests::decoder};

    #[test]
    fn equal_inputs_give_an_equal_plan_whose_steps_never_write_what_they_read() {
        let mut graph = decoder();
        optimize(&mut graph).unwrap();
        for dims in [Dims { tokens: 1, rows: 1 }, Dims { tokens: 7, rows: 2 }] {
            let plan = Plan::new(&graph, dims).unwrap();
            assert_eq!(plan, Plan::new(&graph, dims).unwrap());
            for step in &plan.steps {
                assert!(step.outputs.iter().all(|slot| !step.inputs.contains(&Loc::Slot(*slot))), "{step:?}");
            }
            assert!(plan.slots.len() < graph.nodes.len(), "slots are reused");
            let taking = plan.steps.iter().filter(|step| graph.nodes[step.node].op.name() == "take_rows").count();
            assert_eq!(taking, usize::from(dims.tokens != dims.rows), "what changes nothing is no step");
        }
    }
}
