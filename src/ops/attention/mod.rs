//! Causal grouped-query attention over a key/value cache (Vaswani et al., 2017; Ainslie et al., 2023).
//! The optimizer fuses the norms and the rotary embedding of queries and keys into it.

mod cpu;
mod gpu;

use super::check;
use super::rms_norm::reference_rms_norm;
use super::rope::{Pairs, check_table};
use crate::error::{Error, Result};
use crate::graph::{Fact, Operator, ReferenceCache, ReferenceCx};
use crate::kernels::CpuCx;
use crate::shader::{Launch, LaunchCx};
use crate::tensor::Tensor;

/// RMS norm of each query and key head before the rotary embedding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadNorm {
    /// Added to the mean of squares.
    pub eps: f32,
}

/// Rotary embedding of queries and keys before they meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotary {
    /// Which elements turn together.
    pub pairs: Pairs,
}

/// Writes the step's keys and values into the cache at their positions, then for each query head
/// `dst = softmax(scale · q · Kᵀ) · V` over the keys at positions `≤` its own, and within `window` of it.
/// A query without a visible key gives zeros.
///
/// Inputs, in this order: q f32 `[tokens, n_heads * head_dim]`, k and v f32 `[tokens, n_kv_heads * head_dim]`;
/// the query and key norm weights `[head_dim]` if `norm`; the rotary table if `rotary`.
/// Output f32 `[tokens, n_heads * head_dim]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Index of the cache.
    pub cache: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Key/value heads; divides `n_heads`.
    pub n_kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Factor on the scores, usually `1 / sqrt(head_dim)`.
    pub scale: f32,
    /// Keys a query sees, itself included; all when `None`.
    pub window: Option<usize>,
    /// Norms of the heads, fused.
    pub norm: Option<HeadNorm>,
    /// Rotary embedding, fused.
    pub rotary: Option<Rotary>,
}

/// The inputs of an [`Attention`] by their roles, for any kind of input.
pub struct AttentionInputs<'a, T> {
    /// Queries.
    pub q: &'a T,
    /// Keys.
    pub k: &'a T,
    /// Values.
    pub v: &'a T,
    /// Weights of the query and the key norm.
    pub norms: Option<(&'a T, &'a T)>,
    /// Rotary table.
    pub table: Option<&'a T>,
}

impl Attention {
    /// Sorts inputs into their roles; fails when their number is not what the attributes ask for.
    pub fn split<'a, T>(&self, inputs: &'a [T]) -> Result<AttentionInputs<'a, T>> {
        let (q, k, v, norms, table) = match (inputs, self.norm.is_some(), self.rotary.is_some()) {
            ([q, k, v], false, false) => (q, k, v, None, None),
            ([q, k, v, table], false, true) => (q, k, v, None, Some(table)),
            ([q, k, v, q_norm, k_norm], true, false) => (q, k, v, Some((q_norm, k_norm)), None),
            ([q, k, v, q_norm, k_norm, table], true, true) => (q, k, v, Some((q_norm, k_norm)), Some(table)),
            _ => return Err(Error::internal(format!("{} inputs do not fit {self:?}", inputs.len()))),
        };
        Ok(AttentionInputs { q, k, v, norms, table })
    }

    /// First key position that a query at `position` sees.
    #[must_use]
    pub fn first_visible(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window))
    }

    fn reference_prepare(&self, heads: &mut [f32], width: usize, norm: Option<&[f32]>, turns: Turns<'_>) {
        for (t, token) in heads.chunks_mut(width).enumerate() {
            for head in token.chunks_mut(self.head_dim) {
                if let (Some(weight), Some(HeadNorm { eps })) = (norm, self.norm) {
                    reference_rms_norm(head, weight, eps);
                }
                if let (Some((table, row)), Some(rotary)) = (turns.table, self.rotary) {
                    rotary.pairs.reference_turn(head, &table[(turns.position + t) * row..][..row]);
                }
            }
        }
    }

    fn reference_write(&self, cache: &mut ReferenceCache, position: usize, k: &[f32], v: &[f32]) {
        let width = self.n_kv_heads * self.head_dim;
        for (t, (k, v)) in k.chunks(width).zip(v.chunks(width)).enumerate() {
            for head in 0..self.n_kv_heads {
                let at = (head * cache.capacity + position + t) * self.head_dim;
                let range = head * self.head_dim..(head + 1) * self.head_dim;
                for (plane, from) in [(&mut cache.keys, k), (&mut cache.values, v)] {
                    let to = &mut plane[at..][..self.head_dim];
                    to.copy_from_slice(&from[range.clone()]);
                    cache.kv_type.round(to);
                }
            }
        }
    }

    fn reference_head(&self, cache: &ReferenceCache, kv_head: usize, position: usize, q: &[f32]) -> Vec<f64> {
        let first = self.first_visible(position);
        let row =
            |plane: &'_ [f32], t: usize, i: usize| f64::from(plane[(kv_head * cache.capacity + t) * self.head_dim + i]);
        let score = |t: usize| -> f64 { (0..self.head_dim).map(|i| f64::from(q[i]) * row(&cache.keys, t, i)).sum() };
        let scores: Vec<f64> = (first..=position).map(|t| score(t) * f64::from(self.scale)).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|score| (score - max).exp()).sum();
        let mut dst = vec![0f64; self.head_dim];
        for (t, score) in (first..=position).zip(&scores) {
            let share = (score - max).exp() / sum;
            for (i, dst) in dst.iter_mut().enumerate() {
                *dst += share * row(&cache.values, t, i);
            }
        }
        dst
    }
}

/// The rotary table with its row length, and the position of the first token.
#[derive(Clone, Copy)]
struct Turns<'a> {
    table: Option<(&'a [f32], usize)>,
    position: usize,
}

impl Operator for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn infer(&self, inputs: &[&Fact]) -> Result<Vec<Fact>> {
        let inputs = self.split(inputs)?;
        let (width, kv_width) = (self.n_heads * self.head_dim, self.n_kv_heads * self.head_dim);
        if check::width(inputs.q)? != width
            || check::width(inputs.k)? != kv_width
            || !self.n_heads.is_multiple_of(self.n_kv_heads.max(1))
        {
            return Err(Error::internal(format!(
                "q {:?} and k {:?} do not fit {self:?}",
                inputs.q.shape, inputs.k.shape
            )));
        }
        check::same(inputs.k, inputs.v)?;
        if let Some((q, k)) = inputs.norms {
            check::vector(q, self.head_dim)?;
            check::vector(k, self.head_dim)?;
        }
        if let Some(table) = inputs.table {
            check_table(table, self.head_dim)?;
        }
        Ok(vec![(*inputs.q).clone()])
    }

    fn reference(&self, cx: &mut ReferenceCx<'_>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let inputs = self.split(inputs)?;
        let (mut q, mut k, v) = (inputs.q.as_f32()?.to_vec(), inputs.k.as_f32()?.to_vec(), inputs.v.as_f32()?);
        let table = inputs.table.map(|table| Ok((table.as_f32()?, table.shape()[1] * 2))).transpose()?;
        let turns = Turns { table, position: cx.position };
        let norms = inputs.norms.map(|(q, k)| Ok((q.as_f32()?, k.as_f32()?))).transpose()?;
        let width = self.n_heads * self.head_dim;
        self.reference_prepare(&mut q, width, norms.map(|norms| norms.0), turns);
        self.reference_prepare(&mut k, self.n_kv_heads * self.head_dim, norms.map(|norms| norms.1), turns);
        let position = cx.position;
        let cache = cx.caches.get_mut(self.cache).ok_or_else(|| Error::internal("no such cache"))?;
        self.reference_write(cache, position, &k, v);
        let group = self.n_heads / self.n_kv_heads;
        let mut dst = Vec::with_capacity(q.len());
        for (t, token) in q.chunks(width).enumerate() {
            for (head, q) in token.chunks(self.head_dim).enumerate() {
                let head = self.reference_head(cache, head / group, position + t, q);
                dst.extend(head.into_iter().map(|x| x as f32));
            }
        }
        Ok(vec![Tensor::f32(inputs.q.shape(), dst)?])
    }

    fn cpu(&self, cx: &mut CpuCx<'_>) -> Result<()> {
        cpu::run(self, cx)
    }

    fn gpu(&self, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
        gpu::launches(self, cx)
    }

    fn cache(&self) -> Option<usize> {
        Some(self.cache)
    }
}
