//! The GPU backend on wgpu: Vulkan and Metal natively, WebGPU in browsers. Runs the launches that operations
//! describe; knows no operation, no layout and no architecture by name.

mod check;
mod decode;
mod device;
mod estimate;
mod hidden;
mod model;
mod pace;
mod profile;
mod program;
mod sample;
mod snapshots;
mod state;
mod weights;

#[cfg(test)]
mod tests;

use super::{BoxFuture, Executable, LoadRequest, OpenOptions};
use crate::error::Result;

pub use check::kernels;
pub use estimate::estimate;

/// Opens the GPU and prepares for a model. Fails with the reason when there is no GPU that may be used.
pub fn open(options: OpenOptions, request: LoadRequest) -> BoxFuture<'static, Result<Box<dyn Executable>>> {
    Box::pin(async move {
        let gpu = device::Gpu::open(options).await?;
        Ok(Box::new(model::Model::new(gpu, request)?) as Box<dyn Executable>)
    })
}
