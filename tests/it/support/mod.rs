//! What several tests share.

pub mod convert;
pub mod gguf_builder;
pub mod load;
pub mod open;
pub mod real_model;
pub mod tiny_model;
