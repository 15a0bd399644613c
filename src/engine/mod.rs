//! The engine: loads a model, holds it, runs conversations. The Rust SDK's face is [`Edge`].

mod capacity;
mod chat;
mod config;
#[cfg_attr(target_arch = "wasm32", path = "constraints_remote.rs")]
mod constraints;
#[cfg(not(target_arch = "wasm32"))]
mod edge;
mod embed;
mod loader;
mod message;
mod model;
mod outlook;
mod text;
mod vocabulary;
mod weights;

pub use chat::ChatOptions;
pub use config::{Backend, EdgeConfig, KvCache, Model, Quantization};
#[cfg(not(target_arch = "wasm32"))]
pub use edge::{Edge, TokenStream};
pub use embed::{EmbedInput, EmbedOptions};
pub use loader::{Loader, Need};
pub use message::Message;
pub use model::{Clock, Diagnostics, LoadedModel, MemoryReport, ModelInfo, Rejection, Score, Started};
pub use outlook::Outlook;
pub use weights::{HeldWeights, held_as};
