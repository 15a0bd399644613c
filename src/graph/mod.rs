//! The intermediate representation: one graph serves decoders and, later, imported graphs.
//! Knows operators only by their trait; no file format, no device.

mod builder;
mod fact;
mod operator;

pub use builder::GraphBuilder;
pub use fact::{Dim, Dims, Fact};
pub use operator::{Operator, ReferenceCache, ReferenceCx};

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::sync::Arc;

/// Index of a value (an edge) of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// The token ids of the step, u32 `[tokens]`.
    Tokens,
    /// `Graph::weights[i]`.
    Weight(usize),
    /// `Graph::constants[i]`.
    Constant(usize),
    /// An output of a node.
    Node,
}

/// An edge of the graph.
#[derive(Debug, Clone)]
pub struct Value {
    /// Name for logs and error paths, e.g. `blk.3.attn_q`.
    pub name: String,
    /// What is known of it.
    pub fact: Fact,
    /// Where it comes from.
    pub origin: Origin,
}

/// A weight that the file must supply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// The tensor's name in the file.
    pub name: String,
    /// Rows (outputs) of the matrix; 1 for a vector.
    pub rows: usize,
    /// Columns (inputs) of the matrix; the length of a vector.
    pub columns: usize,
    /// Vectors (norms, biases) are always held as f32.
    pub vector: bool,
}

/// One key/value cache: an attention layer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSpec {
    /// Key/value heads.
    pub n_kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
}

/// An operation at its place in the graph.
#[derive(Debug, Clone)]
pub struct Node {
    /// Name for logs and error paths.
    pub name: String,
    /// The operation.
    pub op: Arc<dyn Operator>,
    /// Values read.
    pub inputs: Vec<ValueId>,
    /// Values made.
    pub outputs: Vec<ValueId>,
}

/// A whole model: nodes in an order in which they can run.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Every edge.
    pub values: Vec<Value>,
    /// Operations in topological order.
    pub nodes: Vec<Node>,
    /// Weights to load.
    pub weights: Vec<Weight>,
    /// Tensors made on the host, such as rotary tables.
    pub constants: Vec<Arc<Tensor>>,
    /// Key/value caches.
    pub caches: Vec<CacheSpec>,
    /// Results: for a decoder the logits, f32 `[rows, vocab_size]`.
    pub outputs: Vec<ValueId>,
    /// Of a decoder: the same graph as far as the states that the logits are made from, f32 `[rows, hidden_size]`. Its
    /// indices of weights, constants and caches are those of this graph.
    pub hidden: Option<Arc<Graph>>,
}

impl Graph {
    /// The fact of a value.
    #[must_use]
    pub fn fact(&self, id: ValueId) -> &Fact {
        &self.values[id.0].fact
    }

    /// The index of the weight a value stands for, if it stands for one.
    #[must_use]
    pub fn weight_of(&self, id: ValueId) -> Option<usize> {
        match self.values[id.0].origin {
            Origin::Weight(index) => Some(index),
            _ => None,
        }
    }

    /// The graph that ends at the states.
    pub fn hidden(&self) -> Result<&Arc<Self>> {
        self.hidden.as_ref().ok_or_else(|| Error::internal("this graph has no states before its output"))
    }

    /// How many nodes read a value; a graph output counts as one reader more.
    #[must_use]
    pub fn n_readers(&self, id: ValueId) -> usize {
        let nodes = self.nodes.iter().flat_map(|node| &node.inputs).filter(|input| **input == id).count();
        nodes + self.outputs.iter().filter(|output| **output == id).count()
    }
}
