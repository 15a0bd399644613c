//! Chat templates.
mod rendered;
pub use rendered::{Rendered, Segment};
