//! Root-mean-square normalization (Zhang and Sennrich, 2019, eq. 4).

mod cpu;
pub(super) mod gpu;

use super::check;
use crate::error::{Error, Result};
use crate::graph::{Fact, Operator, ReferenceCx};
use crate::kernels::CpuCx;
use crate::shader::{Launch, LaunchCx};
use crate::tensor::Tensor;

/// `dst = x / sqrt(mean(x²) + eps) * weight` over each part of `weight.len()` elements of the last axis
/// (the whole axis, or the heads in it). Inputs: x f32, weight f32 vector.
#[derive(Debug, Clone, Copy)]
pub struct RmsNorm {
    /// Added to the mean of squares.
    pub eps: f32,
}

/// The reference of one part, in place.
pub fn reference_rms_norm(x: &mut [f32], weight: &[f32], eps: f32) {
    let sum: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let scale = 1.0 / (sum / x.len() as f64 + f64::from(eps)).sqrt();
    for (x, &weight) in x.iter_mut().zip(weight) {
        *x = (f64::from(*x) * scale * f64::from(weight)) as f32;
    }
}

impl Operator for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
        let [x, weight] = check::arity(inputs)?;
        let (width, part) = (check::width(x)?, check::width(weight)?);
        check::vector(weight, part)?;
        if part == 0 || width % part != 0 {
            return Err(Error::internal(format!("a weight of {part} does not divide an axis of {width}")));
        }
        Ok(vec![x.clone()])
    }

    fn reference(&self, _cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let (mut dst, weight) = (inputs[0].as_f32()?.to_vec(), inputs[1].as_f32()?);
        for part in dst.chunks_mut(weight.len()) {
            reference_rms_norm(part, weight, self.eps);
        }
        Ok(vec![Tensor::f32(inputs[0].shape(), dst)?])
    }

    fn cpu(&self, cx: &mut CpuCx<'_>) -> Result<()> {
        cpu::run(self, cx)
    }

    fn gpu(&self, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
        gpu::launches(self, cx)
    }
}
