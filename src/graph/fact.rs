//! What is known of a value before anything runs: dtype and shape, with the sizes of a step left open.

use crate::tensor::DType;

/// Size of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Known when the graph is built.
    Fixed(usize),
    /// Tokens of the step.
    Tokens,
    /// Tokens of the step whose logits are wanted: the last ones.
    Rows,
}

/// The sizes that a plan fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims {
    /// Tokens of the step.
    pub tokens: usize,
    /// Of these, the last ones whose logits are wanted.
    pub rows: usize,
}

impl Dim {
    /// The size under `dims`.
    #[must_use]
    pub fn resolve(self, dims: Dims) -> usize {
        match self {
            Self::Fixed(size) => size,
            Self::Tokens => dims.tokens,
            Self::Rows => dims.rows,
        }
    }
}

/// Dtype and shape of a value. Weights are f32 facts whatever format stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Element type.
    pub dtype: DType,
    /// Axes, outermost first.
    pub shape: Vec<Dim>,
}

impl Fact {
    /// An f32 fact.
    #[must_use]
    pub fn f32(shape: impl Into<Vec<Dim>>) -> Self {
        Self { dtype: DType::F32, shape: shape.into() }
    }

    /// The shape under `dims`.
    #[must_use]
    pub fn resolve(&self, dims: Dims) -> Vec<usize> {
        self.shape.iter().map(|dim| dim.resolve(dims)).collect()
    }

    /// Elements under `dims`.
    #[must_use]
    pub fn len(&self, dims: Dims) -> usize {
        self.resolve(dims).iter().product()
    }

    /// Size of the last axis when it is fixed.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        match self.shape.last() {
            Some(Dim::Fixed(size)) => Some(*size),
            _ => None,
        }
    }
}
