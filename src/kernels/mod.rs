//! CPU kernels on plain slices, and the context in which an operation calls them.
//! Knows packed layouts, no operators, no files.

mod context;

pub use context::{CpuCx, CpuInput};
