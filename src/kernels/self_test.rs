//! A check at load that the kernels about to be used multiply rightly on this processor.

use super::{Compute, CpuMatrix, MatmulInput, MatmulJob, QuantizedRows};
use crate::error::{Error, Result};

/// Rows compared.
const ROWS: usize = 16;
/// Activation rows: the block of one and the block of several are different code.
const COLUMNS: [usize; 2] = [1, 5];
/// Mean squared error allowed, as a share of the mean square: float rounding only.
const TOLERANCE: f64 = 1e-9;

/// What a value, at most 1 in magnitude, may lose as a code: half a step of 8 bits.
const CODE_ERROR: f64 = 0.501 / 127.0;

/// Multiplies `weight` with a fixed input and compares its first rows with plain sums in double precision, and the input's codes
/// with the input.
///
/// # Errors
/// `Internal`, saying what was found, when they disagree.
pub fn self_test(compute: &Compute, weight: &CpuMatrix) -> Result<()> {
    for n in COLUMNS {
        let columns = weight.columns();
        let values: Vec<f32> = (0..n * columns).map(|i| ((i * 37 + i / 7) % 101) as f32 / 50.0 - 1.0).collect();
        let mut quantized = QuantizedRows::default();
        compute.quantize(&values, n, &[weight], &mut quantized)?;
        let mut found = vec![f32::NAN; n * weight.rows()];
        let input = MatmulInput { values: &values, quantized: Some(&quantized), rows: n };
        compute.matmul(input, &mut [MatmulJob { weight, dst: &mut found }])?;
        let bits = compute.kernels().activation_bits(weight.layout());
        if bits < 32 {
            for (i, value) in values.iter().enumerate() {
                let coded = quantized.value(i / columns, i % columns, bits == 16);
                if (coded - f64::from(*value)).abs() > CODE_ERROR {
                    let name = compute.kernels().name();
                    return Err(Error::internal(format!("the {name} kernels code the activation {value} as {coded}")));
                }
            }
        }
        let mut row = vec![0f32; columns];
        let (mut error, mut norm) = (0f64, 0f64);
        for index in 0..ROWS.min(weight.rows()) {
            weight.row(index, &mut row)?;
            for i in 0..n {
                let x = |k: usize| {
                    if bits < 32 { quantized.value(i, k, bits == 16) } else { f64::from(values[i * columns + k]) }
                };
                let products = row.iter().enumerate().map(|(k, w)| f64::from(*w) * x(k));
                let expected: f64 = products.clone().sum();
                norm += products.map(|product| product * product).sum::<f64>();
                error += (expected - f64::from(found[i * weight.rows() + index])).powi(2);
            }
        }
        if !norm.is_finite() {
            // Weights that are no numbers say nothing of the kernels; they show in the logits.
            continue;
        }
        if error.is_nan() || error > norm * TOLERANCE {
            let name = compute.kernels().name();
            return Err(Error::internal(format!(
                "the {name} kernels of {} are wrong by {error:e} in {norm:e}",
                weight.layout().name()
            )));
        }
    }
    Ok(())
}
