//! Host tensors: the oracle's values, and what crosses between layers on the CPU. Knows no file format and no device.

use crate::error::{Error, Result};

/// Element type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 32-bit unsigned integer (token ids).
    U32,
}

/// The elements of a [`Tensor`].
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
}

/// A dense, row-major tensor in host memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Data,
}

impl Tensor {
    /// A tensor of floats; fails unless `data.len()` is the product of `shape`.
    pub fn f32(shape: impl Into<Vec<usize>>, data: Vec<f32>) -> Result<Self> {
        Self::new(shape.into(), Data::F32(data))
    }

    /// A tensor of ids; fails unless `data.len()` is the product of `shape`.
    pub fn u32(shape: impl Into<Vec<usize>>, data: Vec<u32>) -> Result<Self> {
        Self::new(shape.into(), Data::U32(data))
    }

    fn new(shape: Vec<usize>, data: Data) -> Result<Self> {
        let len = match &data {
            Data::F32(data) => data.len(),
            Data::U32(data) => data.len(),
        };
        let expected = shape.iter().try_fold(1usize, |product, &axis| product.checked_mul(axis));
        if expected != Some(len) {
            return Err(Error::internal(format!("shape {shape:?} does not hold {len} elements")));
        }
        Ok(Self { shape, data })
    }

    /// Sizes of the axes, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match self.data {
            Data::F32(_) => DType::F32,
            Data::U32(_) => DType::U32,
        }
    }

    /// The elements.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The floats; fails on another dtype.
    pub fn as_f32(&self) -> Result<&[f32]> {
        match &self.data {
            Data::F32(data) => Ok(data),
            Data::U32(_) => Err(Error::internal("expected an f32 tensor, found u32")),
        }
    }

    /// The ids; fails on another dtype.
    pub fn as_u32(&self) -> Result<&[u32]> {
        match &self.data {
            Data::U32(data) => Ok(data),
            Data::F32(_) => Err(Error::internal("expected a u32 tensor, found f32")),
        }
    }
}
