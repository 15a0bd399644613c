//! Blocks that decoder architectures share: embedding, attention, gated feed-forward, head.

use super::Source;
use crate::error::{Context, Error, Result};
use crate::graph::{CacheSpec, Graph, GraphBuilder, ValueId};
use crate::ops::{Add, Attention, Embed, Linear, Mul, Pairs, RmsNorm, Rope, RopeTable, Silu, TakeRows};

/// A decoder under construction: a graph, and the source its weights are named by.
pub struct Decoder<'a> {
    source: &'a Source<'a>,
    graph: GraphBuilder,
    rope_table: ValueId,
    pairs: Pairs,
}

impl<'a> Decoder<'a> {
    /// Starts a decoder whose rotary embedding turns these pairs.
    pub fn new(source: &'a Source<'a>, pairs: Pairs) -> Result<Self> {
        let hparams = &source.hparams;
        let table = RopeTable {
            base: hparams.rope_base,
            rotary_dim: hparams.rotary_dim,
            scaling: hparams.rope_scaling,
            factors: source.rope_factors.clone(),
        };
        let mut graph = GraphBuilder::default();
        let rope_table = graph.constant("rope_table", table.build(source.capacity)?);
        Ok(Self { source, graph, rope_table, pairs })
    }

    /// The embeddings of the step's tokens, `[tokens, hidden_size]`.
    pub fn embed(&mut self) -> Result<ValueId> {
        let hparams = &self.source.hparams;
        let tokens = self.graph.tokens();
        let table = self.matrix("token_embd.weight", hparams.vocab_size, hparams.hidden_size)?;
        self.graph.op("token_embd", Embed, &[tokens, table])
    }

    /// `x + attention(norm(x))`; with norms of the query and key heads where the file has them.
    pub fn attention_block(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let hparams = self.source.hparams.clone();
        let name = |part: &str| format!("blk.{layer}.{part}");
        let (n_heads, n_kv_heads, head_dim) = (hparams.n_heads, hparams.n_kv_heads, hparams.head_dim);
        let (q_width, kv_width) = (n_heads * head_dim, n_kv_heads * head_dim);
        let h = self.norm(&name("attn_norm"), x, hparams.hidden_size)?;
        let q = self.linear(&name("attn_q"), h, q_width, hparams.hidden_size)?;
        let k = self.linear(&name("attn_k"), h, kv_width, hparams.hidden_size)?;
        let v = self.linear(&name("attn_v"), h, kv_width, hparams.hidden_size)?;
        let q = self.turned(&name("attn_q_norm"), q)?;
        let k = self.turned(&name("attn_k_norm"), k)?;
        let attention = Attention {
            cache: self.graph.cache(CacheSpec { n_kv_heads, head_dim }),
            n_heads,
            n_kv_heads,
            head_dim,
            scale: 1.0 / (head_dim as f32).sqrt(),
            window: None,
            norm: None,
            rotary: None,
        };
        let heads = self.graph.op(&name("attn"), attention, &[q, k, v])?;
        let output = self.linear(&name("attn_output"), heads, hparams.hidden_size, q_width)?;
        self.graph.op(&name("attn_residual"), Add, &[output, x])
    }

    /// `x + down(silu(gate(norm(x))) * up(norm(x)))`.
    pub fn gated_mlp(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let (hidden, inner) = (self.source.hparams.hidden_size, self.source.hparams.intermediate_size);
        let name = |part: &str| format!("blk.{layer}.{part}");
        let h = self.norm(&name("ffn_norm"), x, hidden)?;
        let gate = self.linear(&name("ffn_gate"), h, inner, hidden)?;
        let up = self.linear(&name("ffn_up"), h, inner, hidden)?;
        let gate = self.graph.op(&name("ffn_silu"), Silu, &[gate])?;
        let gated = self.graph.op(&name("ffn_mul"), Mul, &[gate, up])?;
        let down = self.linear(&name("ffn_down"), gated, hidden, inner)?;
        self.graph.op(&name("ffn_residual"), Add, &[down, x])
    }

    /// The logits of the wanted rows, `[rows, vocab_size]`, made from their normed states; the matrix is the embedding
    /// table unless the file has one of its own.
    pub fn head(mut self, x: ValueId) -> Result<Graph> {
        let (hidden, vocab) = (self.source.hparams.hidden_size, self.source.hparams.vocab_size);
        let rows = self.graph.op("take_rows", TakeRows, &[x])?;
        let h = self.norm("output_norm", rows, hidden)?;
        let untied = self.source.file.tensor("output.weight").is_some();
        let matrix = self.matrix(if untied { "output.weight" } else { "token_embd.weight" }, vocab, hidden)?;
        let logits = self.graph.op("output", Linear::PLAIN, &[h, matrix])?;
        Ok(self.graph.finish_decoder(h, logits))
    }

    /// Query or key heads after their norm, where the file has one, and the rotary embedding.
    fn turned(&mut self, norm: &str, heads: ValueId) -> Result<ValueId> {
        let head_dim = self.source.hparams.head_dim;
        let has_norm = self.source.file.tensor(&format!("{norm}.weight")).is_some();
        let heads = if has_norm { self.norm(norm, heads, head_dim)? } else { heads };
        self.graph.op(&format!("{norm}_rope"), Rope { head_dim, pairs: self.pairs }, &[heads, self.rope_table])
    }

    fn norm(&mut self, name: &str, x: ValueId, len: usize) -> Result<ValueId> {
        let weight = self.vector(&format!("{name}.weight"), len)?;
        self.graph.op(name, RmsNorm { eps: self.source.hparams.norm_eps }, &[x, weight])
    }

    fn linear(&mut self, name: &str, x: ValueId, rows: usize, columns: usize) -> Result<ValueId> {
        let mut inputs = vec![x, self.matrix(&format!("{name}.weight"), rows, columns)?];
        let bias = format!("{name}.bias");
        let has_bias = self.source.file.tensor(&bias).is_some();
        if has_bias {
            inputs.push(self.vector(&bias, rows)?);
        }
        self.graph.op(name, Linear { bias: has_bias, ..Linear::PLAIN }, &inputs)
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<ValueId> {
        self.check(name, &[rows, columns])?;
        Ok(self.graph.matrix(name, rows, columns))
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<ValueId> {
        self.check(name, &[len])?;
        Ok(self.graph.vector(name, len))
    }

    fn check(&self, name: &str, expected: &[usize]) -> Result<()> {
        let found = &self.source.file.require_tensor(name)?.shape;
        if found == expected {
            return Ok(());
        }
        Err(Error::malformed(format!("expected shape {expected:?}, found {found:?}"))).at(|| name)
    }
}
