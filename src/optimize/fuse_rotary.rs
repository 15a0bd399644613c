//! The rotary embedding of queries and keys moves into the attention that reads them.

use super::rewrite::{absorb, everywhere, sole_producer};
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::{Attention, Rope, Rotary};

/// Runs the pass.
pub fn run(graph: &mut Graph) -> Result<usize> {
    everywhere(graph, step)
}

fn step(graph: &mut Graph, index: usize) -> Result<bool> {
    let node = &graph.nodes[index];
    let plain = |op: &Attention| op.rotary.is_none() && op.norm.is_none();
    let Some(op) = node.op.downcast_ref::<Attention>().copied().filter(plain) else { return Ok(false) };
    let ropes = sole_producer::<Rope>(graph, node.inputs[0]).zip(sole_producer::<Rope>(graph, node.inputs[1]));
    let Some(((q, q_op), (k, k_op))) = ropes else { return Ok(false) };
    let (q_inputs, k_inputs) = (&graph.nodes[q].inputs, &graph.nodes[k].inputs);
    if q_op != k_op || q_op.head_dim != op.head_dim || q_inputs[1] != k_inputs[1] {
        return Ok(false);
    }
    let rotary = Some(Rotary { pairs: q_op.pairs });
    let inputs = vec![q_inputs[0], k_inputs[0], node.inputs[2], q_inputs[1]];
    absorb(graph, index, Attention { rotary, ..op }, inputs, &[q, k])?;
    Ok(true)
}
