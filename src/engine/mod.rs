//! The engine: loads a model, holds it, runs conversations. The Rust SDK's face is [`Edge`].

mod capacity;
mod config;
#[cfg(not(target_arch = "wasm32"))]
mod edge;
mod loader;
mod message;
mod model;
mod outlook;
mod text;
mod vocabulary;

pub use config::{Backend, EdgeConfig, KvCache, Model, Quantization};
#[cfg(not(target_arch = "wasm32"))]
pub use edge::{Edge, TokenStream};
pub use loader::{Loader, Need};
pub use message::Message;
pub use model::{ChatOptions, Clock, Diagnostics, LoadedModel, MemoryReport, ModelInfo, Rejection, Score};
pub use outlook::Outlook;
