//! Builds graphs: checks every node's shape rule as it is added.

use super::{CacheSpec, Dim, Fact, Graph, Node, Operator, Origin, Value, ValueId, Weight};
use crate::error::{Context, Error, Result};
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

/// Adds values and nodes to a [`Graph`] in running order.
#[derive(Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
}

impl GraphBuilder {
    /// The token ids of the step, u32 `[tokens]`.
    pub fn tokens(&mut self) -> ValueId {
        let fact = Fact { dtype: DType::U32, shape: vec![Dim::Tokens] };
        self.value("tokens", fact, Origin::Tokens)
    }

    /// A weight matrix `[rows, columns]`; asking twice for a name gives the same value (tied weights).
    pub fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> ValueId {
        self.weight(Weight { name: name.to_owned(), rows, columns, vector: false })
    }

    /// A weight vector `[len]`.
    pub fn vector(&mut self, name: &str, len: usize) -> ValueId {
        self.weight(Weight { name: name.to_owned(), rows: 1, columns: len, vector: true })
    }

    /// A tensor made on the host; equal tensors are kept once.
    pub fn constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        let fact = Fact { dtype: tensor.dtype(), shape: tensor.shape().iter().map(|&axis| Dim::Fixed(axis)).collect() };
        let index = self.graph.constants.len();
        self.graph.constants.push(Arc::new(tensor));
        self.value(name, fact, Origin::Constant(index))
    }

    /// A key/value cache; answers its index.
    pub fn cache(&mut self, spec: CacheSpec) -> usize {
        self.graph.caches.push(spec);
        self.graph.caches.len() - 1
    }

    /// Adds an operation; answers its outputs.
    pub fn node(&mut self, name: &str, op: impl Operator, inputs: &[ValueId]) -> Result<Vec<ValueId>> {
        self.node_of(name, Arc::new(op), inputs)
    }

    /// As [`GraphBuilder::node`] for an operation that is shared.
    pub fn node_of(&mut self, name: &str, op: Arc<dyn Operator>, inputs: &[ValueId]) -> Result<Vec<ValueId>> {
        let facts: Vec<&Fact> = inputs.iter().map(|input| self.graph.fact(*input)).collect();
        let facts = op.infer(&facts).at(|| op.name()).at(|| name)?;
        let outputs: Vec<ValueId> = facts.into_iter().map(|fact| self.value(name, fact, Origin::Node)).collect();
        self.graph.nodes.push(Node { name: name.to_owned(), op, inputs: inputs.to_vec(), outputs: outputs.clone() });
        Ok(outputs)
    }

    /// Adds an operation that has one output; answers it.
    pub fn op(&mut self, name: &str, op: impl Operator, inputs: &[ValueId]) -> Result<ValueId> {
        match self.node(name, op, inputs)?.as_slice() {
            [output] => Ok(*output),
            outputs => Err(Error::internal(format!("expected one output, found {}", outputs.len())).at(name)),
        }
    }

    /// The graph with these results.
    #[must_use]
    pub fn finish(mut self, outputs: &[ValueId]) -> Graph {
        self.graph.outputs = outputs.to_vec();
        self.graph
    }

    /// The graph of a decoder, whose last node makes `logits` from the states `hidden`.
    #[must_use]
    pub fn finish_decoder(self, hidden: ValueId, logits: ValueId) -> Graph {
        let mut graph = self.finish(&[logits]);
        let mut ending = Graph { outputs: vec![hidden], ..graph.clone() };
        ending.nodes.retain(|node| !node.outputs.contains(&logits));
        graph.hidden = Some(Arc::new(ending));
        graph
    }

    fn weight(&mut self, weight: Weight) -> ValueId {
        if let Some(index) = self.graph.weights.iter().position(|known| known.name == weight.name) {
            let known = self.graph.values.iter().position(|value| value.origin == Origin::Weight(index));
            if let Some(value) = known {
                return ValueId(value);
            }
        }
        let shape = if weight.vector {
            vec![Dim::Fixed(weight.columns)]
        } else {
            vec![Dim::Fixed(weight.rows), Dim::Fixed(weight.columns)]
        };
        let name = weight.name.clone();
        let index = self.graph.weights.len();
        self.graph.weights.push(weight);
        self.value(&name, Fact::f32(shape), Origin::Weight(index))
    }

    fn value(&mut self, name: &str, fact: Fact, origin: Origin) -> ValueId {
        self.graph.values.push(Value { name: name.to_owned(), fact, origin });
        ValueId(self.graph.values.len() - 1)
    }
}
