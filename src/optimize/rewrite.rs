//! What passes share: finding producers, and replacing nodes.

use crate::error::Result;
use crate::graph::{Graph, Node, Operator, ValueId};
use std::sync::Arc;

/// The index of the node that makes `value`, with its operation, if that is a `T`.
pub fn producer<T: Operator>(graph: &Graph, value: ValueId) -> Option<(usize, &T)> {
    let index = graph.nodes.iter().position(|node| node.outputs.contains(&value))?;
    Some((index, graph.nodes[index].op.downcast_ref()?))
}

/// As [`producer`], where nothing but one node reads the value, so that the producer may vanish.
pub fn sole_producer<T: Operator>(graph: &Graph, value: ValueId) -> Option<(usize, &T)> {
    if graph.n_readers(value) == 1 { producer(graph, value) } else { None }
}

/// Replaces the node at `index` by one of the same outputs, and removes the nodes it has absorbed.
/// The shape rule of the new operation must agree with the outputs' facts.
pub fn absorb(
    graph: &mut Graph,
    index: usize,
    op: impl Operator,
    inputs: Vec<ValueId>,
    absorbed: &[usize],
) -> Result<()> {
    let outputs = graph.nodes[index].outputs.clone();
    replace(graph, index, Node { name: graph.nodes[index].name.clone(), op: Arc::new(op), inputs, outputs }, absorbed)
}

/// Puts `node` at `index` and removes the nodes it has absorbed.
pub fn replace(graph: &mut Graph, index: usize, node: Node, absorbed: &[usize]) -> Result<()> {
    let facts: Vec<_> = node.inputs.iter().map(|input| graph.fact(*input)).collect();
    let facts = node.op.infer(&facts)?;
    let agrees = facts.iter().eq(node.outputs.iter().map(|output| graph.fact(*output)));
    if !agrees {
        return Err(crate::error::Error::internal("a pass changed the shape of a value").at(node.name));
    }
    graph.nodes[index] = node;
    let mut position = 0;
    graph.nodes.retain(|_| {
        position += 1;
        !absorbed.contains(&(position - 1))
    });
    Ok(())
}

/// Applies `step` to node after node until it applies nowhere; `step` answers whether it changed the graph.
pub fn everywhere(graph: &mut Graph, step: fn(&mut Graph, usize) -> Result<bool>) -> Result<usize> {
    let (mut index, mut applied) = (0, 0);
    while index < graph.nodes.len() {
        if step(graph, index)? {
            applied += 1;
        } else {
            index += 1;
        }
    }
    Ok(applied)
}
