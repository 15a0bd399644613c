//! Rotary position embedding (Su et al., 2021), with tables made on the host.

mod cpu;
mod gpu;
mod table;

pub(in crate::ops) use cpu::rotary;
pub use table::{RopeScaling, RopeTable};

use super::check;
use crate::error::{Error, Result};
use crate::graph::{Dim, Fact, Operator, ReferenceCx};
use crate::kernels::CpuCx;
use crate::shader::{Launch, LaunchCx};
use crate::tensor::Tensor;

/// Which elements of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pairs {
    /// `(x[2i], x[2i + 1])`: GGUF files of the llama architecture, whose rows were permuted so.
    Interleaved,
    /// `(x[i], x[i + rotary_dim / 2])`: qwen and most others.
    Halves,
}

/// Turns the first `2 * pairs` elements of each head by the table's angles:
/// `(a, b) → (a cos − b sin, a sin + b cos)` at the token's absolute position.
/// Inputs: x f32 `[tokens, n_heads * head_dim]`, table f32 `[capacity, pairs, 2]` of (cos, sin).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rope {
    /// Width of a head.
    pub head_dim: usize,
    /// Which elements turn together.
    pub pairs: Pairs,
}

impl Pairs {
    /// The two indices of pair `i` in a head of which `n_pairs` pairs turn.
    #[must_use]
    pub fn indices(self, i: usize, n_pairs: usize) -> (usize, usize) {
        match self {
            Self::Interleaved => (2 * i, 2 * i + 1),
            Self::Halves => (i, i + n_pairs),
        }
    }

    /// The reference of one head at one position, in place; `turns` is the table's row: (cos, sin) of each pair.
    pub fn reference_turn(self, head: &mut [f32], turns: &[f32]) {
        for (i, turn) in turns.chunks_exact(2).enumerate() {
            let (a, b) = self.indices(i, turns.len() / 2);
            let (cos, sin) = (f64::from(turn[0]), f64::from(turn[1]));
            let (x, y) = (f64::from(head[a]), f64::from(head[b]));
            head[a] = (x * cos - y * sin) as f32;
            head[b] = (x * sin + y * cos) as f32;
        }
    }
}

/// Checks a table against a head; answers the number of pairs.
pub fn check_table(table: &Fact, head_dim: usize) -> Result<usize> {
    match table.shape.as_slice() {
        [Dim::Fixed(_), Dim::Fixed(pairs), Dim::Fixed(2)] if *pairs * 2 <= head_dim => Ok(*pairs),
        shape => Err(Error::internal(format!("expected a rotary table for heads of {head_dim}, found {shape:?}"))),
    }
}

impl Operator for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
        let [x, table] = check::arity(inputs)?;
        check_table(table, self.head_dim)?;
        let width = check::width(x)?;
        if width % self.head_dim != 0 {
            return Err(Error::internal(format!("heads of {} do not divide {width}", self.head_dim)));
        }
        Ok(vec![x.clone()])
    }

    fn reference(&self, cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let (mut dst, table) = (inputs[0].as_f32()?.to_vec(), inputs[1].as_f32()?);
        let (width, row) = (inputs[0].shape()[1], inputs[1].shape()[1] * 2);
        for (t, token) in dst.chunks_mut(width).enumerate() {
            let turns = &table[(cx.position + t) * row..][..row];
            for head in token.chunks_mut(self.head_dim) {
                self.pairs.reference_turn(head, turns);
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn turned(pairs: Pairs) -> Vec<f32> {
        let table = RopeTable { base: 10_000.0, rotary_dim: 8, scaling: RopeScaling::None, factors: None };
        let table = table.build(2).unwrap();
        let x = Tensor::f32([1, 8], (1..=8).map(|x| x as f32).collect()).unwrap();
        let mut cx = ReferenceCx { position: 1, rows: 1, caches: &mut [] };
        let op = Rope { head_dim: 8, pairs };
        op.reference(&mut cx, &[&x, &table]).unwrap()[0].as_f32().unwrap().to_vec()
    }

    fn assert_close(found: &[f32], expected: &[f32]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-3, "{found} is not {expected}");
        }
    }

    #[test]
    fn rotary_pairs_are_interleaved_or_halves() {
        let interleaved = [-1.1426, 1.9221, 2.5857, 4.2795, 4.9398, 6.0497, 6.992, 8.007];
        assert_close(&turned(Pairs::Interleaved), &interleaved);
        let halves = [-3.6671, 1.391, 2.9299, 3.992, 3.543, 6.1697, 7.0296, 8.004];
        assert_close(&turned(Pairs::Halves), &halves);
    }
}
