//! The Qwen3 class (Yang et al., 2025), the Zen models' too: as Llama, with norms of the query and key heads
//! and rotary pairs in halves.

use super::Source;
use super::blocks::Decoder;
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::Pairs;

/// Builds the graph.
pub fn build(source: &Source<'_>) -> Result<Graph> {
    source.file.require_tensor("blk.0.attn_q_norm.weight")?;
    let mut decoder = Decoder::new(source, Pairs::Halves)?;
    let mut x = decoder.embed()?;
    for layer in 0..source.hparams.n_layers {
        x = decoder.attention_block(layer, x)?;
        x = decoder.gated_mlp(layer, x)?;
    }
    decoder.head(x)
}
