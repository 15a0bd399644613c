//! Integration tests: one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod gguf;
mod hostile;
mod support;
mod tidy;
mod tokenize;
