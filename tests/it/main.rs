//! Integration tests: one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cli;
mod embed;
mod gguf;
mod hostile;
mod hostile_models;
mod oracle;
mod outlook;
mod quantize;
mod structured;
mod support;
mod tidy;
mod tokenize;
