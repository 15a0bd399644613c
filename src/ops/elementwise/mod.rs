//! Elementwise operators: `add`, `mul`, `silu`. The optimizer fuses them into their neighbours in a decoder;
//! these run where it cannot.

mod cpu;
pub(super) mod gpu;

use super::check;
use crate::error::Result;
use crate::graph::{Fact, Operator, ReferenceCx};
use crate::kernels::CpuCx;
use crate::shader::{Launch, LaunchCx};
use crate::tensor::Tensor;

/// `dst = lhs + rhs`, equal shapes.
#[derive(Debug, Clone, Copy)]
pub struct Add;

/// `dst = lhs * rhs`, equal shapes.
#[derive(Debug, Clone, Copy)]
pub struct Mul;

/// `dst = x / (1 + exp(-x))`.
#[derive(Debug, Clone, Copy)]
pub struct Silu;

/// What the kernels dispatch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elementwise {
    Add,
    Mul,
    Silu,
}

impl Elementwise {
    fn reference(self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let lhs = inputs[0].as_f32()?;
        let dst = match self {
            Self::Add => lhs.iter().zip(inputs[1].as_f32()?).map(|(lhs, rhs)| lhs + rhs).collect(),
            Self::Mul => lhs.iter().zip(inputs[1].as_f32()?).map(|(lhs, rhs)| lhs * rhs).collect(),
            Self::Silu => lhs.iter().map(|&x| (f64::from(x) / (1.0 + (-f64::from(x)).exp())) as f32).collect(),
        };
        Ok(vec![Tensor::f32(inputs[0].shape(), dst)?])
    }

    fn infer(self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
        if self == Self::Silu {
            let [x] = check::arity(inputs)?;
            return Ok(vec![x.clone()]);
        }
        let [lhs, rhs] = check::arity(inputs)?;
        check::same(lhs, rhs)?;
        Ok(vec![lhs.clone()])
    }
}

macro_rules! elementwise {
    ($op:ident, $name:literal) => {
        impl Operator for $op {
            fn name(&self) -> &'static str {
                $name
            }

            fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
                Elementwise::$op.infer(inputs)
            }

            fn reference(&self, _cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
                Elementwise::$op.reference(inputs)
            }

            fn cpu(&self, cx: &mut CpuCx<'_>) -> Result<()> {
                cpu::run(Elementwise::$op, cx)
            }

            fn gpu(&self, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
                gpu::launches(Elementwise::$op, cx)
            }
        }
    };
}

elementwise!(Add, "add");
elementwise!(Mul, "mul");
elementwise!(Silu, "silu");
