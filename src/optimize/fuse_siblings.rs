//! Plain linears of one input become one with several matrices: queries, keys and values.

use super::rewrite::{everywhere, replace};
use crate::error::Result;
use crate::graph::{Graph, Node};
use crate::ops::Linear;
use std::sync::Arc;

/// Runs the pass.
pub fn run(graph: &mut Graph) -> Result<usize> {
    everywhere(graph, step)
}

fn step(graph: &mut Graph, index: usize) -> Result<bool> {
    let Some(op) = plain(&graph.nodes[index]) else { return Ok(false) };
    let x = graph.nodes[index].inputs[0];
    let is_sibling = |node: &Node| node.inputs[0] == x && plain(node) == Some(op);
    let siblings: Vec<usize> = (index..graph.nodes.len()).filter(|i| is_sibling(&graph.nodes[*i])).collect();
    if siblings.len() < 2 {
        return Ok(false);
    }
    let gather =
        |slot: usize| siblings.iter().filter_map(|i| graph.nodes[*i].inputs.get(slot).copied()).collect::<Vec<_>>();
    let inputs = [vec![x], gather(1), gather(2)].concat();
    let node = Node {
        name: siblings.iter().map(|i| graph.nodes[*i].name.as_str()).collect::<Vec<_>>().join("+"),
        op: Arc::new(Linear { n_matrices: siblings.len(), ..op }),
        inputs,
        outputs: siblings.iter().flat_map(|i| graph.nodes[*i].outputs.clone()).collect(),
    };
    replace(graph, index, node, &siblings[1..])?;
    Ok(true)
}

fn plain(node: &Node) -> Option<Linear> {
    let op = *node.op.downcast_ref::<Linear>()?;
    (Linear { bias: false, ..op } == Linear::PLAIN).then_some(op)
}
