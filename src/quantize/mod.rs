//! Quantization while loading: which weights of a graph are quantized anew, and to which layout. Knows the layouts in
//! which weights are stored, and no file, no device and no bytes.
//!
//! A scheme is one row of [`SCHEMES`]. Vectors (norms, biases) are never quantized, and no weight gets larger: one
//! that is stored in no more bytes than the scheme would take keeps its layout.

#[cfg(test)]
mod tests;

use crate::graph::{Graph, Weight};
use crate::ops::Embed;
use crate::quant::{Codes, PackedLayout};

/// Columns of a group: the first of these that divides the columns of a matrix. (What 128 divides, 64 divides too.)
const GROUPS: [usize; 2] = [64, 32];

/// How activations meet weights that are quantized anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Activations {
    /// As each backend finds best: floats, or integers with a scale for a few columns.
    #[default]
    Blocks,
    /// Bytes with one scale and one zero point for all activations of a token, from their least and largest value,
    /// where the backend multiplies bytes by whole rows.
    Tensor,
}

/// A way to store weights that users name.
#[derive(Debug)]
pub struct Scheme {
    /// The name users type, e.g. `afq-4`.
    pub name: &'static str,
    /// Codes of the matrices.
    codes: Codes,
    /// Codes of the embedding table and of the matrix of the vocabulary, which are often the same.
    vocabulary: Codes,
    /// Whether weights have a scale and a bias for each group; otherwise one scale for each row.
    affine: bool,
    /// Whether it is chosen where the user names none and the file's own weights do not fit.
    pub automatic: bool,
    /// What the activations become.
    pub activations: Activations,
}

/// Every scheme; the automatic ones in the order in which they are tried.
pub static SCHEMES: &[Scheme] = &[
    afq("afq-8", Codes::B8, Codes::B8),
    afq("afq-6", Codes::B6, Codes::B6),
    afq("afq-4", Codes::B4, Codes::B6),
    afq("afq-3", Codes::B3, Codes::B6),
    afq("afq-2", Codes::B2, Codes::B6),
    Scheme {
        name: "int8",
        codes: Codes::B8,
        vocabulary: Codes::B8,
        affine: false,
        automatic: false,
        activations: Activations::Tensor,
    },
];

const fn afq(name: &'static str, codes: Codes, vocabulary: Codes) -> Scheme {
    Scheme { name, codes, vocabulary, affine: true, automatic: true, activations: Activations::Blocks }
}

/// The scheme of this name.
#[must_use]
pub fn scheme(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|scheme| scheme.name == name)
}

impl Scheme {
    /// How a matrix of `columns` columns would be stored; `None` where no group divides the columns.
    fn layout(&self, codes: Codes, columns: usize) -> Option<PackedLayout> {
        if !self.affine {
            let whole = columns > 0 && columns.is_multiple_of(32);
            return whole.then_some(PackedLayout::Coded { codes, group: columns, affine: false });
        }
        let group = GROUPS.into_iter().find(|group| columns.is_multiple_of(*group))?;
        Some(PackedLayout::Coded { codes, group, affine: true })
    }
}

/// How each weight of `graph` will be held, from how the file stores it: quantized anew where `scheme` makes it
/// smaller, else as it is.
#[must_use]
pub fn layouts(scheme: Option<&Scheme>, graph: &Graph, stored: &[PackedLayout]) -> Vec<PackedLayout> {
    let Some(scheme) = scheme else { return stored.to_vec() };
    let weights = graph.weights.iter().zip(stored).enumerate();
    weights
        .map(|(index, (weight, &stored))| {
            if weight.vector {
                return stored;
            }
            let codes = if reads_vocabulary(graph, index) { scheme.vocabulary } else { scheme.codes };
            let layout = scheme.layout(codes, weight.columns);
            layout.filter(|&layout| bytes_of(weight, layout) < bytes_of(weight, stored)).unwrap_or(stored)
        })
        .collect()
}

/// Bytes of the weights in these layouts.
#[must_use]
pub fn bytes(graph: &Graph, layouts: &[PackedLayout]) -> u64 {
    graph.weights.iter().zip(layouts).map(|(weight, layout)| bytes_of(weight, *layout)).sum()
}

/// How many matrices are held in each layout, and in how many bytes; the largest share first.
#[must_use]
pub fn shares(graph: &Graph, layouts: &[PackedLayout]) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for (weight, layout) in graph.weights.iter().zip(layouts).filter(|(weight, _)| !weight.vector) {
        let (name, bytes) = (layout.name(), bytes_of(weight, *layout));
        match shares.iter_mut().find(|share| share.layout == name) {
            Some(share) => {
                share.matrices += 1;
                share.bytes += bytes;
            }
            None => shares.push(Share { layout: name, matrices: 1, bytes }),
        }
    }
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    shares
}

/// Matrices that are held in one layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The layout's name, e.g. `b4g64a`: 4-bit codes in affine groups of 64.
    pub layout: String,
    /// Matrices.
    pub matrices: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Bytes of a weight in a layout.
#[must_use]
pub fn bytes_of(weight: &Weight, layout: PackedLayout) -> u64 {
    layout.plane_bytes(weight.rows, weight.columns).iter().map(|bytes| *bytes as u64).sum()
}

/// Whether a weight is the embedding table or makes an output of the graph.
fn reads_vocabulary(graph: &Graph, weight: usize) -> bool {
    graph.nodes.iter().any(|node| {
        let reads = node.inputs.iter().any(|input| graph.weight_of(*input) == Some(weight));
        let at_end = || node.outputs.iter().any(|output| graph.outputs.contains(output));
        reads && (node.op.downcast_ref::<Embed>().is_some() || at_end())
    })
}
