//! CPU kernels on plain slices: matrix products with packed weights, attention, norms and other row-wise arithmetic,
//! in every instruction set there is. [`Compute`] is the way in: it checks lengths, divides the work among threads
//! and calls the kernels of the processor. Knows no graph, no operator and no plan.
//!
//! * [`CpuMatrix`]: a weight, in the layout the GPU reads too.
//! * [`QuantizedRows`]: activations as integers, made once for all the weights that read them.
//! * [`Kernels`]: the functions of one instruction set.
//! * [`KvCache`]: keys and values of an attention layer.
//! * [`Pool`]: the threads.
//! * [`CpuCx`]: what an operation sees when it runs on the CPU.

mod activations;
mod attention;
mod attention_part;
mod cache;
mod compute;
mod context;
mod elementwise;
mod float16;
mod isa;
mod matmul;
mod matrix;
#[cfg(target_arch = "x86_64")]
mod matvec;
mod pool;
mod quantize;
mod self_test;
mod table;
#[cfg(test)]
mod tests;

pub use activations::QuantizedRows;
pub use attention::{Attention, AttentionShape, ByteRows, CacheSlices};
pub use cache::KvCache;
pub use compute::{Compute, MatmulInput, MatmulJob, Rotary};
pub use context::{CpuCx, CpuInput, Scratch, copy};
pub use elementwise::Unary;
pub use float16::{f16_to_f32, store_f16};
pub use matrix::{CpuMatrix, CpuMatrixBuilder};
pub use pool::Pool;
#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
pub use pool::{note_fault, release, serve};
pub use self_test::self_test;
pub use table::Kernels;
