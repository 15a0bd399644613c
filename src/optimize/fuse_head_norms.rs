//! The norms of query and key heads move into the attention that reads them.

use super::rewrite::{absorb, everywhere, sole_producer};
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::{Attention, HeadNorm, RmsNorm};

/// Runs the pass.
pub fn run(graph: &mut Graph) -> Result<usize> {
    everywhere(graph, step)
}

fn step(graph: &mut Graph, index: usize) -> Result<bool> {
    let node = &graph.nodes[index];
    let Some(op) = node.op.downcast_ref::<Attention>().copied().filter(|op| op.norm.is_none()) else {
        return Ok(false);
    };
    let norms = sole_producer::<RmsNorm>(graph, node.inputs[0]).zip(sole_producer::<RmsNorm>(graph, node.inputs[1]));
    let Some(((q, q_op), (k, k_op))) = norms else { return Ok(false) };
    let (q_inputs, k_inputs) = (&graph.nodes[q].inputs, &graph.nodes[k].inputs);
    let of_heads = |weight| graph.fact(weight).width() == Some(op.head_dim);
    if q_op.eps.to_bits() != k_op.eps.to_bits() || !of_heads(q_inputs[1]) || !of_heads(k_inputs[1]) {
        return Ok(false);
    }
    let norm = Some(HeadNorm { eps: q_op.eps });
    let mut inputs = vec![q_inputs[0], k_inputs[0], node.inputs[2], q_inputs[1], k_inputs[1]];
    inputs.extend(node.inputs.get(3));
    absorb(graph, index, Attention { norm, ..op }, inputs, &[q, k])?;
    Ok(true)
}
