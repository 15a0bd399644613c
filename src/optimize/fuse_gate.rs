//! `silu(x · gateᵀ) * (x · upᵀ)` becomes one gated linear.

use super::rewrite::{absorb, everywhere, sole_producer};
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::{Gate, Linear, Mul, Silu};

/// Runs the pass.
pub fn run(graph: &mut Graph) -> Result<usize> {
    everywhere(graph, step)
}

fn step(graph: &mut Graph, index: usize) -> Result<bool> {
    let node = &graph.nodes[index];
    if node.op.downcast_ref::<Mul>().is_none() {
        return Ok(false);
    }
    let (lhs, rhs) = (node.inputs[0], node.inputs[1]);
    let found = [(lhs, rhs), (rhs, lhs)].into_iter().find_map(|(gated, up)| {
        let (silu, _) = sole_producer::<Silu>(graph, gated)?;
        let (gate, gate_op) = sole_producer::<Linear>(graph, graph.nodes[silu].inputs[0])?;
        let (up, up_op) = sole_producer::<Linear>(graph, up)?;
        let plain = *gate_op == *up_op && Linear { bias: false, ..*gate_op } == Linear::PLAIN;
        (plain && graph.nodes[gate].inputs[0] == graph.nodes[up].inputs[0]).then_some((silu, gate, up, gate_op.bias))
    });
    let Some((silu, gate, up, bias)) = found else { return Ok(false) };
    let (gate_inputs, up_inputs) = (&graph.nodes[gate].inputs, &graph.nodes[up].inputs);
    let mut inputs = vec![gate_inputs[0], gate_inputs[1], up_inputs[1]];
    if bias {
        inputs.extend([gate_inputs[2], up_inputs[2]]);
    }
    let op = Linear { n_matrices: 2, gate: Some(Gate::Silu), bias, ..Linear::PLAIN };
    absorb(graph, index, op, inputs, &[silu, gate, up])?;
    Ok(true)
}
