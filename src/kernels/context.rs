//! What an operation sees when it runs on the CPU.

/// An input of an operation on the CPU.
pub enum CpuInput<'a> {
    /// Activations, a constant or a weight vector, row-major.
    F32(&'a [f32]),
    /// Token ids.
    U32(&'a [u32]),
}

/// Inputs, outputs and state of one operation of one step on the CPU.
pub struct CpuCx<'a> {
    /// Position of the step's first token.
    pub position: usize,
    /// Tokens of the step.
    pub tokens: usize,
    /// Rows whose logits are wanted.
    pub rows: usize,
    /// Inputs in the operation's order.
    pub inputs: &'a [CpuInput<'a>],
    /// Outputs in the operation's order, already of their length.
    pub outputs: &'a mut [Vec<f32>],
}
