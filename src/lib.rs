//! Hanzo Edge: on-device inference for language models in browsers and natively.
//!
//! The layers, lowest first; a module uses only strictly lower ones (see `docs/architecture.md`):
//! `error` · `tensor` `bytes` · `quant` · `shader` `kernels` `text` · `format` `graph` · `ops` · `models` ·
//! `optimize` `quantize` · `plan` · `backend` · `generate` `registry` · `engine` · `web`, and the command line program.

pub mod backend;
pub mod bytes;
pub mod engine;
pub mod error;
pub mod format;
pub mod generate;
pub mod graph;
pub mod kernels;
pub mod models;
pub mod ops;
pub mod optimize;
pub mod plan;
pub mod quant;
pub mod quantize;
pub mod registry;
pub mod shader;
pub mod tensor;
pub mod text;
#[cfg(target_arch = "wasm32")]
#[cfg_attr(feature = "grammar-module", path = "web/grammar.rs")]
pub mod web;

pub use engine::{Backend, ChatOptions, EdgeConfig, EmbedOptions, KvCache, Message, Model, Quantization};
#[cfg(not(target_arch = "wasm32"))]
pub use engine::{Edge, TokenStream};
pub use error::{Error, ErrorKind, Result};
pub use generate::{FinishReason, GenerateOptions, GenerateResult, Grammar, Pooling};

/// The examples of README.md, compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
