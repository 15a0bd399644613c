//! `linear` on the CPU: the input is normed and quantized once, every matrix is multiplied in one parallel region,
//! and what follows runs in place.

use super::{Gate, Linear, LinearInputs};
use crate::error::{Error, Result};
use crate::kernels::{Compute, CpuCx, CpuInput, CpuMatrix, MatmulInput, MatmulJob, QuantizedRows, Scratch, Unary};

pub fn run(op: &Linear, cx: &mut CpuCx<'_>) -> Result<()> {
    let inputs = op.split(cx.inputs)?;
    let matrices = inputs.matrices.iter().map(|matrix| matrix.matrix()).collect::<Result<Vec<_>>>()?;
    let columns = matrices.first().map_or(1, |matrix| matrix.columns());
    let Scratch { quantized, first, second } = &mut *cx.scratch;
    let mut x = inputs.x.f32()?;
    if let (Some(weight), Some(eps)) = (inputs.norm, op.norm) {
        first.resize(x.len(), 0.0);
        cx.compute.rms_norm(x, weight.f32()?, eps, first)?;
        x = first;
    }
    let rows = x.len() / columns.max(1);
    let input = input(cx.compute, (x, rows), &matrices, quantized)?;
    let mut targets: Vec<&mut [f32]> = cx.outputs.iter_mut().map(|output| &mut **output).collect();
    if let (Some(_), Some(up)) = (op.gate, matrices.get(1)) {
        second.resize(rows * up.rows(), 0.0);
        targets.push(second);
    }
    if targets.len() != matrices.len() {
        return Err(Error::internal(format!("expected {} outputs, found {}", matrices.len(), targets.len())));
    }
    multiply(cx.compute, input, &matrices, &mut targets)?;
    finish(op, cx.compute, &inputs, &mut targets)
}

/// The activations `[rows, columns]`, quantized when a matrix needs it: as whole rows where the matrices are made for
/// that.
fn input<'a>(
    compute: &Compute,
    (values, rows): (&'a [f32], usize),
    matrices: &[&CpuMatrix],
    quantized: &'a mut QuantizedRows,
) -> Result<MatmulInput<'a>> {
    if !matrices.iter().any(|matrix| matrix.is_coded()) {
        return Ok(MatmulInput { values, quantized: None, rows });
    }
    let coded = |matrix: &&&CpuMatrix| matrix.is_coded();
    if matrices.iter().filter(coded).all(|matrix| !matrix.row_sums().is_empty()) {
        compute.quantize_whole(values, rows, matrices, quantized)?;
    } else {
        compute.quantize(values, rows, matrices, quantized)?;
    }
    Ok(MatmulInput { values, quantized: Some(quantized), rows })
}

fn multiply(
    compute: &Compute,
    input: MatmulInput<'_>,
    matrices: &[&CpuMatrix],
    targets: &mut [&mut [f32]],
) -> Result<()> {
    let jobs = matrices.iter().zip(targets);
    let mut jobs: Vec<_> = jobs.map(|(weight, dst)| MatmulJob { weight, dst }).collect();
    compute.matmul(input, &mut jobs)
}

/// Biases, then the gate, then the residual.
fn finish(
    op: &Linear,
    compute: &Compute,
    inputs: &LinearInputs<'_, CpuInput<'_>>,
    targets: &mut [&mut [f32]],
) -> Result<()> {
    for (target, bias) in targets.iter_mut().zip(inputs.biases) {
        compute.add(target, bias.f32()?)?;
    }
    if let (Some(Gate::Silu), [gate, up]) = (op.gate, &mut *targets) {
        compute.gate(Unary::Silu, gate, up)?;
    }
    if let (Some(residual), [dst, ..]) = (inputs.residual, targets) {
        compute.add(dst, residual.f32()?)?;
    }
    Ok(())
}
