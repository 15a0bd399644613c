//! A norm of the whole axis that only a linear reads moves into it.

use super::rewrite::{absorb, everywhere, sole_producer};
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::{Linear, RmsNorm};

/// Runs the pass.
pub fn run(graph: &mut Graph) -> Result<usize> {
    everywhere(graph, step)
}

fn step(graph: &mut Graph, index: usize) -> Result<bool> {
    let node = &graph.nodes[index];
    let Some(op) = node.op.downcast_ref::<Linear>().copied().filter(|op| op.norm.is_none()) else { return Ok(false) };
    let Some((norm, RmsNorm { eps })) = sole_producer(graph, node.inputs[0]) else { return Ok(false) };
    let (x, weight) = (graph.nodes[norm].inputs[0], graph.nodes[norm].inputs[1]);
    if graph.fact(x).width() != graph.fact(weight).width() {
        return Ok(false);
    }
    let inputs = [x, weight].into_iter().chain(node.inputs[1..].iter().copied()).collect();
    let eps = *eps;
    absorb(graph, index, Linear { norm: Some(eps), ..op }, inputs, &[norm])?;
    Ok(true)
}
