//! Rotary tables, computed on the host in f64 because WGSL's sine and cosine are only good to 2⁻¹¹.

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::f64::consts::PI;

/// How the frequencies are stretched for contexts longer than those of training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Every frequency divided by `factor` (position interpolation; Chen et al., 2023).
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3.1's: low frequencies divided, high ones kept, a ramp between.
    Llama3 {
        /// The divisor of low frequencies.
        factor: f64,
        /// Wavelengths above `original_context / low` are divided.
        low: f64,
        /// Wavelengths below `original_context / high` are kept.
        high: f64,
        /// Context of training.
        original_context: f64,
    },
    /// YaRN (Peng et al., 2023): a ramp over dimensions, and attention scaled by `0.1 ln(factor) + 1`.
    Yarn {
        /// The divisor.
        factor: f64,
        /// Context of training.
        original_context: f64,
        /// Turns in the context of training above which a dimension is kept.
        beta_fast: f64,
        /// Turns below which it is divided.
        beta_slow: f64,
        /// A further factor on cosine and sine.
        attention_factor: f64,
    },
}

/// What determines a rotary table.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeTable {
    /// Base of the frequencies: `base^(-2i / rotary_dim)`.
    pub base: f64,
    /// Elements of a head that turn.
    pub rotary_dim: usize,
    /// Stretching.
    pub scaling: RopeScaling,
    /// A divisor for each frequency, where the file has them.
    pub factors: Option<Vec<f32>>,
}

impl RopeTable {
    /// The table for positions `0..capacity`: f32 `[capacity, rotary_dim / 2, 2]` of (cos, sin).
    pub fn build(&self, capacity: usize) -> Result<Tensor> {
        let pairs = self.rotary_dim / 2;
        if let Some(factors) = &self.factors
            && factors.len() != pairs
        {
            return Err(Error::malformed(format!("expected {pairs} rotary factors, found {}", factors.len())));
        }
        let frequencies: Vec<f64> = (0..pairs).map(|i| self.frequency(i)).collect();
        let magnitude = self.magnitude();
        let mut table = Vec::new();
        capacity
            .checked_mul(pairs * 2)
            .and_then(|len| table.try_reserve_exact(len).ok())
            .ok_or_else(|| Error::out_of_memory(format!("no room for the rotary table of {capacity} positions")))?;
        for position in 0..capacity {
            for frequency in &frequencies {
                let angle = position as f64 * frequency;
                table.push((angle.cos() * magnitude) as f32);
                table.push((angle.sin() * magnitude) as f32);
            }
        }
        Tensor::f32([capacity, pairs, 2], table)
    }

    fn magnitude(&self) -> f64 {
        match self.scaling {
            RopeScaling::Yarn { factor, attention_factor, .. } => attention_factor * (0.1 * factor.ln() + 1.0),
            _ => 1.0,
        }
    }

    fn frequency(&self, i: usize) -> f64 {
        let divisor = self.factors.as_ref().map_or(1.0, |factors| f64::from(factors[i]));
        let frequency = self.base.powf(-2.0 * i as f64 / self.rotary_dim as f64) / divisor;
        match self.scaling {
            RopeScaling::None => frequency,
            RopeScaling::Linear { factor } => frequency / factor,
            RopeScaling::Llama3 { factor, low, high, original_context } => {
                let turns = original_context * frequency / (2.0 * PI);
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (kept + (1.0 - kept) / factor)
            }
            RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, .. } => {
                let first = self.dimension_of(beta_fast, original_context).floor().max(0.0);
                let last = self.dimension_of(beta_slow, original_context).ceil().min(self.rotary_dim as f64 - 1.0);
                let divided = ((i as f64 - first) / (last - first).max(0.001)).clamp(0.0, 1.0);
                frequency * (divided / factor + (1.0 - divided))
            }
        }
    }

    /// The dimension (in pairs) that makes `turns` turns within the context of training.
    fn dimension_of(&self, turns: f64, original_context: f64) -> f64 {
        self.rotary_dim as f64 * (original_context / (turns * 2.0 * PI)).ln() / (2.0 * self.base.ln())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn cosines(scaling: RopeScaling) -> Vec<f32> {
        let table = RopeTable { base: 10_000.0, rotary_dim: 64, scaling, factors: None };
        table.build(2).unwrap().as_f32().unwrap()[64..].iter().step_by(2).copied().collect()
    }

    #[test]
    fn linear_scaling_divides_every_frequency() {
        let plain = cosines(RopeScaling::None);
        let scaled = cosines(RopeScaling::Linear { factor: 2.0 });
        for (plain, scaled) in plain.iter().zip(scaled) {
            assert!((f64::from(*plain).acos() / 2.0 - f64::from(scaled).acos()).abs() < 1e-3);
        }
    }

    #[test]
    fn llama3_scaling_keeps_high_and_divides_low_frequencies() {
        let scaling = RopeScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original_context: 8192.0 };
        let table = RopeTable { base: 500_000.0, rotary_dim: 64, scaling, factors: None };
        let plain = RopeTable { scaling: RopeScaling::None, ..table.clone() };
        assert_eq!(table.frequency(0), plain.frequency(0));
        assert!((table.frequency(31) * 8.0 / plain.frequency(31) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn yarn_keeps_the_first_and_divides_the_last_dimension() {
        let scaling = RopeScaling::Yarn {
            factor: 4.0,
            original_context: 32768.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor: 1.0,
        };
        let table = RopeTable { base: 1e6, rotary_dim: 128, scaling, factors: None };
        let plain = RopeTable { scaling: RopeScaling::None, ..table.clone() };
        assert_eq!(table.frequency(0), plain.frequency(0));
        assert!((table.frequency(63) * 4.0 / plain.frequency(63) - 1.0).abs() < 1e-12);
        assert!((table.magnitude() - 1.138_629).abs() < 1e-5);
    }
}
