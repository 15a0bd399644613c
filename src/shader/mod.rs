//! GPU launches as pure data, and the assembly of WGSL: no GPU type is known here.

mod launch;

pub use launch::{Launch, LaunchCx};
