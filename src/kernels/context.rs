//! What an operation sees when it runs on the CPU.

use super::{Compute, CpuMatrix, KvCache, QuantizedRows};
use crate::error::{Error, Result};

/// An input of an operation on the CPU.
#[derive(Debug, Clone, Copy)]
pub enum CpuInput<'a> {
    /// Activations, a constant or a weight vector, row-major.
    F32(&'a [f32]),
    /// Token ids.
    U32(&'a [u32]),
    /// A weight matrix.
    Matrix(&'a CpuMatrix),
}

impl<'a> CpuInput<'a> {
    /// The floats; fails on another kind of input.
    pub fn f32(self) -> Result<&'a [f32]> {
        match self {
            Self::F32(values) => Ok(values),
            _ => Err(Error::internal("expected floats as an input on the CPU")),
        }
    }

    /// The token ids; fails on another kind of input.
    pub fn u32(self) -> Result<&'a [u32]> {
        match self {
            Self::U32(values) => Ok(values),
            _ => Err(Error::internal("expected token ids as an input on the CPU")),
        }
    }

    /// The weight matrix; fails on another kind of input.
    pub fn matrix(self) -> Result<&'a CpuMatrix> {
        match self {
            Self::Matrix(matrix) => Ok(matrix),
            _ => Err(Error::internal("expected a weight matrix as an input on the CPU")),
        }
    }
}

/// Buffers that operations use within themselves; kept between steps.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Activations as integers.
    pub quantized: QuantizedRows,
    /// Floats.
    pub first: Vec<f32>,
    /// More floats.
    pub second: Vec<f32>,
}

impl Scratch {
    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.quantized.bytes() + 4 * (self.first.capacity() + self.second.capacity())
    }
}

/// Inputs, outputs and state of one operation of one step on the CPU.
pub struct CpuCx<'a> {
    /// Kernels and threads.
    pub compute: &'a Compute,
    /// Position of the step's first token.
    pub position: usize,
    /// Tokens of the step.
    pub tokens: usize,
    /// Rows whose logits are wanted.
    pub rows: usize,
    /// Inputs in the operation's order.
    pub inputs: &'a [CpuInput<'a>],
    /// Shapes of the inputs.
    pub shapes: &'a [Vec<usize>],
    /// Outputs in the operation's order, of their length; what they hold is not defined.
    pub outputs: &'a mut [&'a mut [f32]],
    /// The cache that the operation named.
    pub cache: Option<&'a mut KvCache>,
    /// Buffers to use within the operation.
    pub scratch: &'a mut Scratch,
}

impl<'a> CpuCx<'a> {
    /// The inputs as an array; fails unless there are exactly `N`.
    pub fn inputs<const N: usize>(&self) -> Result<[CpuInput<'a>; N]> {
        self.inputs.try_into().map_err(|_| Error::internal(format!("expected {N} inputs, found {}", self.inputs.len())))
    }

    /// The first output; fails when there is none.
    pub fn output(&mut self) -> Result<&mut [f32]> {
        self.outputs.first_mut().map(|output| &mut **output).ok_or_else(|| Error::internal("expected an output"))
    }
}

/// Copies `from` to `to`; fails when their lengths differ.
pub fn copy(from: &[f32], to: &mut [f32]) -> Result<()> {
    if from.len() != to.len() {
        return Err(Error::internal(format!("expected {} values, found {}", to.len(), from.len())));
    }
    to.copy_from_slice(from);
    Ok(())
}
