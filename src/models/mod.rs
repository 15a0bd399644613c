//! Model architectures: from a file's facts and tensor names to a graph of plain operators.
//! Never asks in which format a weight is stored; fusion is the optimizer's work.

mod blocks;
mod hparams;
mod llama;
mod qwen3;

pub use hparams::Hparams;

use crate::error::{Error, Result};
use crate::format::ModelFile;
use crate::graph::Graph;

/// An architecture: a row of [`ARCHITECTURES`].
pub struct Architecture {
    /// The name in `general.architecture`.
    pub name: &'static str,
    /// Which models are of it, for the table of what is supported.
    pub models: &'static str,
    /// Builds the graph.
    build: fn(&Source<'_>) -> Result<Graph>,
}

/// Every architecture.
pub static ARCHITECTURES: &[Architecture] = &[
    Architecture { name: "llama", models: "Llama 2 and 3, Mistral, SmolLM2, TinyLlama", build: llama::build },
    Architecture { name: "qwen3", models: "Qwen3 (dense), Zen3 nano, Zen4 mini", build: qwen3::build },
];

/// Small tensors whose values shape the graph: the loader reads them before it builds.
const EARLY_TENSORS: &[&str] = &[ROPE_FACTORS];

const ROPE_FACTORS: &str = "rope_freqs.weight";

/// What an architecture builds from.
pub struct Source<'a> {
    /// Facts and tensors.
    pub file: &'a ModelFile,
    /// Numbers that describe the model.
    pub hparams: Hparams,
    /// Divisors of the rotary frequencies, where the file has them.
    pub rope_factors: Option<Vec<f32>>,
    /// Tokens that the key/value caches and rotary tables cover.
    pub capacity: usize,
}

/// The architecture of a file; fails naming those that are known.
pub fn architecture(file: &ModelFile) -> Result<&'static Architecture> {
    find(file.metadata.require("general.architecture")?)
}

/// The architecture of this name; fails naming those that are known.
pub fn find(name: &str) -> Result<&'static Architecture> {
    ARCHITECTURES.iter().find(|row| row.name == name).ok_or_else(|| {
        let known: Vec<&str> = ARCHITECTURES.iter().map(|row| row.name).collect();
        Error::unsupported(format!("expected an architecture of {}, found {name:?}", known.join(", ")))
    })
}

/// Names of the tensors of `file` that must be read before [`build`].
pub fn early_tensors(file: &ModelFile) -> impl Iterator<Item = &'static str> + '_ {
    EARLY_TENSORS.iter().copied().filter(|name| file.tensor(name).is_some())
}

/// Builds the graph of a file. `early` has the values of [`early_tensors`] as f32.
pub fn build(file: &ModelFile, early: &[(String, Vec<f32>)], capacity: usize) -> Result<Graph> {
    let architecture = architecture(file)?;
    let rope_factors = early.iter().find(|(name, _)| name == ROPE_FACTORS).map(|(_, values)| values.clone());
    let source = Source { file, hparams: Hparams::read(file)?, rope_factors, capacity };
    (architecture.build)(&source)
}
