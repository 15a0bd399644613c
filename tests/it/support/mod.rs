//! What several tests share.

pub mod gguf_builder;
pub mod open;
pub mod tiny_model;
