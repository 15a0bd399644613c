//! The numbers that describe a decoder, read from a file's metadata and checked.

use crate::error::{Context, Error, Result};
use crate::format::{Metadata, ModelFile};
use crate::ops::RopeScaling;

/// Sizes and constants of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct Hparams {
    /// Layers.
    pub n_layers: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the feed-forward network.
    pub intermediate_size: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Key/value heads.
    pub n_kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Rows of the embedding table.
    pub vocab_size: usize,
    /// Tokens of context that the model was made for.
    pub context_length: usize,
    /// Epsilon of the norms.
    pub norm_eps: f32,
    /// Base of the rotary frequencies.
    pub rope_base: f64,
    /// Elements of a head that turn.
    pub rotary_dim: usize,
    /// Stretching of the rotary frequencies.
    pub rope_scaling: RopeScaling,
}

/// No axis of a real model is longer; keeps products of two within 64 bits.
const MAX_AXIS: u32 = 1 << 26;

/// Metadata of one architecture: keys get its name as a prefix.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn size(&self, name: &str) -> Result<Option<usize>> {
        let key = self.key(name);
        let Some(value) = self.metadata.get::<u32>(&key)? else { return Ok(None) };
        if value == 0 || value > MAX_AXIS {
            return Err(Error::malformed(format!("expected 1 to {MAX_AXIS}, found {value}")).at(key));
        }
        Ok(Some(value as usize))
    }

    fn require_size(&self, name: &str) -> Result<usize> {
        self.size(name)?.ok_or_else(|| Error::malformed("expected a number, found no such key").at(self.key(name)))
    }

    fn positive(&self, name: &str, default: f64) -> Result<f64> {
        let key = self.key(name);
        let value = self.metadata.get::<f32>(&key)?.map_or(default, f64::from);
        if value.is_finite() && value > 0.0 {
            return Ok(value);
        }
        Err(Error::malformed(format!("expected a positive number, found {value}")).at(key))
    }

    /// Tokens here see those before them, never those after.
    fn check_causal(&self) -> Result<()> {
        let key = self.key("attention.causal");
        if self.metadata.get::<bool>(&key)? == Some(false) {
            return Err(Error::unsupported("expected causal attention, found a model that looks ahead").at(key));
        }
        Ok(())
    }

    fn rope_scaling(&self, context_length: usize) -> Result<RopeScaling> {
        let key = self.key("rope.scaling.type");
        let kind = self.metadata.get::<&str>(&key)?.unwrap_or("none");
        let factor = self.positive("rope.scaling.factor", 1.0)?;
        let original = self.size("rope.scaling.original_context_length")?.unwrap_or(context_length) as f64;
        match kind {
            "none" => Ok(RopeScaling::None),
            "linear" => Ok(RopeScaling::Linear { factor }),
            "llama3" => Ok(RopeScaling::Llama3 {
                factor,
                low: self.positive("rope.scaling.low_freq_factor", 1.0)?,
                high: self.positive("rope.scaling.high_freq_factor", 4.0)?,
                original_context: original,
            }),
            "yarn" => Ok(RopeScaling::Yarn {
                factor,
                original_context: original,
                beta_fast: self.positive("rope.scaling.yarn_beta_fast", 32.0)?,
                beta_slow: self.positive("rope.scaling.yarn_beta_slow", 1.0)?,
                attention_factor: self.positive("rope.scaling.attn_factor", 1.0)?,
            }),
            other => Err(Error::unsupported(format!("expected none, linear, llama3 or yarn, found {other:?}")).at(key)),
        }
    }
}

impl Hparams {
    /// Reads and checks the numbers of a file.
    pub fn read(file: &ModelFile) -> Result<Self> {
        let architecture: &str = file.metadata.require("general.architecture")?;
        let keys = Keys { metadata: &file.metadata, architecture };
        keys.check_causal()?;
        let embedding = file.require_tensor("token_embd.weight")?;
        let hidden_size = keys.require_size("embedding_length")?;
        let n_heads = keys.require_size("attention.head_count")?;
        let n_kv_heads = keys.size("attention.head_count_kv")?.unwrap_or(n_heads);
        let head_dim = keys.size("attention.key_length")?.unwrap_or(hidden_size / n_heads);
        let context_length = keys.require_size("context_length")?;
        let hparams = Self {
            n_layers: keys.require_size("block_count")?,
            hidden_size,
            intermediate_size: keys.require_size("feed_forward_length")?,
            n_heads,
            n_kv_heads,
            head_dim,
            vocab_size: embedding.rows(),
            context_length,
            norm_eps: keys.positive("attention.layer_norm_rms_epsilon", 1e-5)? as f32,
            rope_base: keys.positive("rope.freq_base", 10_000.0)?,
            rotary_dim: keys.size("rope.dimension_count")?.unwrap_or(head_dim),
            rope_scaling: keys.rope_scaling(context_length)?,
        };
        let value_dim = keys.size("attention.value_length")?.unwrap_or(head_dim);
        hparams.check(value_dim, file.tensors().len()).at(|| architecture)?;
        Ok(hparams)
    }

    fn check(&self, value_dim: usize, n_tensors: usize) -> Result<()> {
        let expect = |holds: bool, what: String| if holds { Ok(()) } else { Err(Error::malformed(what)) };
        let (heads, kv, head_dim) = (self.n_heads, self.n_kv_heads, self.head_dim);
        expect(self.n_layers <= n_tensors, format!("expected at most {n_tensors} layers, found {}", self.n_layers))?;
        expect(
            kv <= heads && heads % kv == 0,
            format!("expected {heads} heads to be a multiple of {kv} key/value heads"),
        )?;
        expect(
            value_dim == head_dim,
            format!("expected keys and values of one width, found {head_dim} and {value_dim}"),
        )?;
        expect(
            (2..=1024).contains(&head_dim) && head_dim % 2 == 0,
            format!("expected an even head width of 2 to 1024, found {head_dim}"),
        )?;
        let rotary = self.rotary_dim;
        expect(
            rotary <= head_dim && rotary.is_multiple_of(2),
            format!("expected an even rotary width up to {head_dim}, found {rotary}"),
        )
    }
}
