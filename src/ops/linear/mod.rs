//! Matrix products of one input with one or more weight matrices. The optimizer fuses what surrounds them:
//! the norm before, the biases, the gate, and the residual after.

mod cpu;
mod gpu;

use super::check;
use super::rms_norm::reference_rms_norm;
use crate::error::{Error, Result};
use crate::graph::{Dim, Fact, Operator, ReferenceCx};
use crate::kernels::CpuCx;
use crate::shader::{Launch, LaunchCx};
use crate::tensor::Tensor;

/// How two products become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// `silu(first) * second` (SwiGLU; Shazeer, 2020).
    Silu,
}

/// `dst_i = norm(x) · matrix_iᵀ + bias_i`, then the gate, then the residual.
///
/// Inputs, in this order: x f32 `[…, k]`; the norm weight `[k]` if `norm`; the matrices `[n_i, k]`;
/// a bias `[n_i]` for each matrix if `bias`; the residual `[…, n_0]` if `residual`.
/// Outputs: one `[…, n_i]` for each matrix; with a gate (exactly two matrices of equal shape) one.
/// A residual needs exactly one output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// Matrices.
    pub n_matrices: usize,
    /// RMS-normalizes x first, with this epsilon.
    pub norm: Option<f32>,
    /// Whether each matrix has a bias.
    pub bias: bool,
    /// Combines the two products.
    pub gate: Option<Gate>,
    /// Adds the last input to the output.
    pub residual: bool,
}

/// The inputs of a [`Linear`] by their roles, for any kind of input.
pub struct LinearInputs<'a, T> {
    /// The activations.
    pub x: &'a T,
    /// The norm's weight.
    pub norm: Option<&'a T>,
    /// The matrices.
    pub matrices: &'a [T],
    /// The biases: none, or one for each matrix.
    pub biases: &'a [T],
    /// What is added to the output.
    pub residual: Option<&'a T>,
}

impl Linear {
    /// One matrix, nothing fused.
    pub const PLAIN: Self = Self { n_matrices: 1, norm: None, bias: false, gate: None, residual: false };

    /// Outputs of the operation.
    #[must_use]
    pub fn n_outputs(&self) -> usize {
        if self.gate.is_some() { 1 } else { self.n_matrices }
    }

    /// Sorts inputs into their roles; fails when their number is not what the attributes ask for.
    pub fn split<'a, T>(&self, inputs: &'a [T]) -> Result<LinearInputs<'a, T>> {
        let n_biases = if self.bias { self.n_matrices } else { 0 };
        let expected = 1 + usize::from(self.norm.is_some()) + self.n_matrices + n_biases + usize::from(self.residual);
        if inputs.len() != expected || self.n_matrices == 0 {
            return Err(Error::internal(format!("expected {expected} inputs, found {}", inputs.len())));
        }
        let (x, rest) = inputs.split_at(1);
        let (norm, rest) = rest.split_at(usize::from(self.norm.is_some()));
        let (matrices, rest) = rest.split_at(self.n_matrices);
        let (biases, residual) = rest.split_at(n_biases);
        Ok(LinearInputs { x: &x[0], norm: norm.first(), matrices, biases, residual: residual.first() })
    }
}

impl Operator for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
        let inputs = self.split(inputs)?;
        let k = check::width(inputs.x)?;
        if let Some(norm) = inputs.norm {
            check::vector(norm, k)?;
        }
        let mut outputs = Vec::new();
        for (i, matrix) in inputs.matrices.iter().enumerate() {
            let (n, columns) = check::matrix(matrix)?;
            if columns != k {
                return Err(Error::internal(format!("expected a matrix of {k} columns, found {columns}")));
            }
            if let Some(bias) = inputs.biases.get(i) {
                check::vector(bias, n)?;
            }
            let mut shape = inputs.x.shape.clone();
            shape.pop();
            shape.push(Dim::Fixed(n));
            outputs.push(Fact::f32(shape));
        }
        if self.gate.is_some() {
            match outputs.as_slice() {
                [gate, up] => check::same(gate, up)?,
                _ => return Err(Error::internal(format!("a gate takes 2 matrices, found {}", outputs.len()))),
            }
            outputs.truncate(1);
        }
        if let Some(residual) = inputs.residual {
            let [output] = outputs.as_slice() else {
                return Err(Error::internal("a residual needs one output"));
            };
            check::same(output, residual)?;
        }
        Ok(outputs)
    }

    fn reference(&self, _cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let inputs = self.split(inputs)?;
        let mut x = inputs.x.as_f32()?.to_vec();
        let k = inputs.x.shape().last().copied().unwrap_or(1);
        if let (Some(weight), Some(eps)) = (inputs.norm, self.norm) {
            for row in x.chunks_mut(k) {
                reference_rms_norm(row, weight.as_f32()?, eps);
            }
        }
        let mut outputs = Vec::new();
        for (i, matrix) in inputs.matrices.iter().enumerate() {
            let bias = inputs.biases.get(i).map(|bias| bias.as_f32()).transpose()?;
            outputs.push(reference_product(&x, k, matrix.as_f32()?, bias));
        }
        if let (Some(Gate::Silu), [gate, up]) = (self.gate, outputs.as_mut_slice()) {
            for (gate, up) in gate.iter_mut().zip(up) {
                let x = f64::from(*gate);
                *gate = (x / (1.0 + (-x).exp()) * f64::from(*up)) as f32;
            }
            outputs.truncate(1);
        }
        if let Some(residual) = inputs.residual {
            for (dst, add) in outputs[0].iter_mut().zip(residual.as_f32()?) {
                *dst += add;
            }
        }
        let rows = x.len() / k;
        outputs.into_iter().map(|dst| Tensor::f32([rows, dst.len() / rows.max(1)], dst)).collect()
    }

    fn cpu(&self, cx: &mut CpuCx<'_>) -> Result<()> {
        cpu::run(self, cx)
    }

    fn gpu(&self, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
        gpu::launches(self, cx)
    }
}

fn reference_product(x: &[f32], k: usize, matrix: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let mut dst = Vec::with_capacity(x.len() / k * (matrix.len() / k));
    for x in x.chunks(k) {
        for (n, row) in matrix.chunks(k).enumerate() {
            // Four sums in flight, so that the oracle is not bound by the latency of one addition.
            let mut sums = [0f64; 4];
            for (x, row) in x.chunks(4).zip(row.chunks(4)) {
                for ((sum, &x), &w) in sums.iter_mut().zip(x).zip(row) {
                    *sum += f64::from(x) * f64::from(w);
                }
            }
            let sum = sums.iter().sum::<f64>() + bias.map_or(0.0, |bias| f64::from(bias[n]));
            dst.push(sum as f32);
        }
    }
    dst
}
