//! The Llama class (Touvron et al., 2023): Llama, Mistral, SmolLM2. GGUF files of it hold query and key rows
//! permuted for interleaved rotary pairs.

use super::Source;
use super::blocks::Decoder;
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::Pairs;

/// Builds the graph.
pub fn build(source: &Source<'_>) -> Result<Graph> {
    let mut decoder = Decoder::new(source, Pairs::Interleaved)?;
    let mut x = decoder.embed()?;
    for layer in 0..source.hparams.n_layers {
        x = decoder.attention_block(layer, x)?;
        x = decoder.gated_mlp(layer, x)?;
    }
    decoder.head(x)
}
