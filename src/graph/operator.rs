//! The operation as the unit of everything: what it is, its shape rule, its reference, its kernels.

use super::{Dims, Fact};
use crate::error::Result;
use crate::kernels::CpuCx;
use crate::quant::KvType;
use crate::shader::{Launch, LaunchCx};
use crate::tensor::Tensor;
use std::any::Any;
use std::fmt::Debug;

/// Keys and values of one attention layer on the reference backend, `[n_kv_heads][capacity][head_dim]`.
#[derive(Debug, Clone)]
pub struct ReferenceCache {
    /// Tokens that fit.
    pub capacity: usize,
    /// What keys and values are rounded to.
    pub kv_type: KvType,
    /// Keys.
    pub keys: Vec<f32>,
    /// Values.
    pub values: Vec<f32>,
}

/// What an operation's reference sees beside its inputs.
pub struct ReferenceCx<'a> {
    /// Position of the step's first token.
    pub position: usize,
    /// Rows whose logits are wanted.
    pub rows: usize,
    /// The graph's caches.
    pub caches: &'a mut [ReferenceCache],
}

/// An operation with its attributes. `reference` is plain loops with f64 sums and calls no optimized code;
/// `cpu` and `gpu` are checked against it.
pub trait Operator: Any + Debug + Send + Sync {
    /// The name of the operation: the row of `ops::OPS` and the folder it lives in.
    fn name(&self) -> &'static str;

    /// Facts of the outputs from those of the inputs; fails with what was expected and found.
    fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>>;

    /// The slow, obviously right result.
    fn reference(&self, cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// Runs the SIMD kernels over the context's inputs into its outputs.
    fn cpu(&self, cx: &mut CpuCx<'_>) -> Result<()>;

    /// Describes the GPU launches for the shapes, layouts and capabilities of the context. Pure data.
    fn gpu(&self, cx: &LaunchCx<'_>) -> Result<Vec<Launch>>;

    /// Whether at these sizes the output is the input as it is, so that nothing needs to run.
    fn keeps(&self, dims: Dims) -> bool {
        let _ = dims;
        false
    }

    /// Index of the cache that the operation reads and writes.
    fn cache(&self) -> Option<usize> {
        None
    }
}

impl dyn Operator {
    /// The operation as a concrete type, if it is one.
    #[must_use]
    pub fn downcast_ref<T: Operator>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}
