//! Ordered passes from graph to graph. A pass changes what runs, never what is computed.

mod fuse_gate;
mod fuse_head_norms;
mod fuse_norm;
mod fuse_residual;
mod fuse_rotary;
mod fuse_siblings;
mod rewrite;

use crate::error::Result;
use crate::graph::Graph;
use std::sync::Arc;

/// A pass: a row of [`PASSES`].
pub struct Pass {
    /// Its name, that of its file.
    pub name: &'static str,
    /// Rewrites the graph; answers how often it applied.
    pub run: fn(&mut Graph) -> Result<usize>,
}

/// Every pass, in the order in which they run.
pub static PASSES: &[Pass] = &[
    Pass { name: "fuse_gate", run: fuse_gate::run },
    Pass { name: "fuse_siblings", run: fuse_siblings::run },
    Pass { name: "fuse_norm", run: fuse_norm::run },
    Pass { name: "fuse_residual", run: fuse_residual::run },
    Pass { name: "fuse_rotary", run: fuse_rotary::run },
    Pass { name: "fuse_head_norms", run: fuse_head_norms::run },
];

/// Runs every pass once, on the graph that ends at the states too; answers the name of each with how often it applied to
/// the whole.
pub fn optimize(graph: &mut Graph) -> Result<Vec<(&'static str, usize)>> {
    if let Some(hidden) = &mut graph.hidden {
        optimize(Arc::make_mut(hidden))?;
    }
    PASSES.iter().map(|pass| Ok((pass.name, (pass.run)(graph)?))).collect()
}

#[cfg(test)]
pub(crate) mod tests;
