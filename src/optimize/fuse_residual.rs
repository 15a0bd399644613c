//! An addition to the one output of a linear moves into it.

use super::rewrite::{absorb, everywhere, sole_producer};
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::{Add, Linear};

/// Runs the pass.
pub fn run(graph: &mut Graph) -> Result<usize> {
    everywhere(graph, step)
}

fn step(graph: &mut Graph, index: usize) -> Result<bool> {
    let node = &graph.nodes[index];
    if node.op.downcast_ref::<Add>().is_none() || node.inputs[0] == node.inputs[1] {
        return Ok(false);
    }
    let (lhs, rhs) = (node.inputs[0], node.inputs[1]);
    let found = [(lhs, rhs), (rhs, lhs)].into_iter().find_map(|(product, residual)| {
        let (linear, op) = sole_producer::<Linear>(graph, product)?;
        (op.n_outputs() == 1 && !op.residual).then_some((linear, *op, residual))
    });
    let Some((linear, op, residual)) = found else { return Ok(false) };
    let mut inputs = graph.nodes[linear].inputs.clone();
    inputs.push(residual);
    absorb(graph, index, Linear { residual: true, ..op }, inputs, &[linear])?;
    Ok(true)
}
