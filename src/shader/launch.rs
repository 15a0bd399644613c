//! What an operation sees when it describes its GPU launches, and a launch.

use crate::quant::PackedLayout;

/// An input or output as a kernel author needs it.
#[derive(Debug, Clone)]
pub struct Operand {
    /// Sizes of the axes in this plan.
    pub shape: Vec<usize>,
    /// How a weight is stored; `None` for activations.
    pub layout: Option<PackedLayout>,
}

/// Shapes, layouts and capabilities for which an operation describes its launches.
pub struct LaunchCx<'a> {
    /// Tokens of the plan (an upper bound: the real count is in the state buffer).
    pub tokens: usize,
    /// Rows whose logits are wanted.
    pub rows: usize,
    /// Inputs in the operation's order.
    pub inputs: &'a [Operand],
    /// Outputs in the operation's order.
    pub outputs: &'a [Operand],
}

/// One dispatch.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Workgroups per axis.
    pub workgroups: [u32; 3],
}
