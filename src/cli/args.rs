//! Options that several commands share, with llama.cpp's short forms.

use std::str::FromStr;

use clap::Args;
use hanzo_edge::engine::{Backend, EdgeConfig, KvCache, Quantization};
use hanzo_edge::generate::GenerateOptions;

/// How to load a model and what to print.
#[derive(Args, Clone)]
pub struct LoadArgs {
    /// What runs the model: auto, cpu, wgpu (or webgpu), reference
    #[arg(long, default_value = "auto", value_parser = Backend::from_str)]
    pub backend: Backend,
    /// CPU threads; all cores unless given
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Tokens of context; the least of the model's and 4096 unless given
    #[arg(short = 'c', long = "context-tokens", visible_alias = "ctx-size", value_name = "N")]
    pub context_tokens: Option<usize>,
    /// Type of the key/value cache: auto, f16, q8, f32
    #[arg(long, default_value = "auto", value_parser = KvCache::from_str)]
    pub kv_cache: KvCache,
    /// Quantize weights while loading, where that makes them smaller: auto, none, afq-2, afq-3, afq-4, afq-6, afq-8, int8
    #[arg(long, default_value = "auto", value_name = "NAME", value_parser = Quantization::from_str)]
    pub quantize: Quantization,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl LoadArgs {
    /// The engine's configuration; the model is filled in when its path is known.
    pub fn config(&self) -> EdgeConfig {
        EdgeConfig {
            backend: self.backend,
            threads: self.threads.map_or(0, usize::from),
            max_context_tokens: self.context_tokens.unwrap_or(0),
            kv_cache: self.kv_cache,
            quantization: self.quantize,
            ..EdgeConfig::default()
        }
    }
}

/// How to choose tokens and when to end.
#[derive(Args, Clone)]
pub struct SampleArgs {
    /// The most tokens to produce; -1 for as many as fit
    #[arg(short = 'n', long, visible_alias = "predict", value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..=i64::from(u32::MAX)))]
    pub max_tokens: Option<i64>,
    /// 0 always takes the most likely token
    #[arg(long, visible_alias = "temp", value_name = "X", allow_negative_numbers = true)]
    pub temperature: Option<f32>,
    /// Candidates kept; 0 keeps all
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub top_k: Option<i64>,
    /// Least share of probability kept
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub top_p: Option<f32>,
    /// Candidates less likely than this share of the best are dropped
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub min_p: Option<f32>,
    /// Above 1 makes tokens that were there already less likely
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub repeat_penalty: Option<f32>,
    /// Taken off a token's logit for each time it is in the answer
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub frequency_penalty: Option<f32>,
    /// Taken off a token's logit when it is in the answer
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub presence_penalty: Option<f32>,
    /// The same seed gives the same answer
    #[arg(short = 's', long, value_name = "N")]
    pub seed: Option<u64>,
    /// A string that ends the answer; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Guess up to N tokens ahead from what followed the same words before; 15 when N is not given
    #[arg(long, value_name = "N", num_args = 0..=1, default_value_t = 0, default_missing_value = "15")]
    pub speculative: u32,
}

impl SampleArgs {
    /// As the engine's options.
    pub fn options(&self) -> GenerateOptions {
        GenerateOptions {
            max_tokens: self.max_tokens.and_then(|count| u32::try_from(count).ok()),
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repeat_penalty: self.repeat_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            seed: self.seed,
            stop: self.stop.clone(),
            speculative: self.speculative,
            ..GenerateOptions::default()
        }
    }
}

/// Token ids separated by commas.
#[derive(Clone)]
pub struct Tokens(pub Vec<u32>);

impl FromStr for Tokens {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = |id: &str| id.trim().parse().map_err(|_| format!("expected a token id, found {id:?}"));
        text.split(',').map(id).collect::<Result<_, _>>().map(Self)
    }
}
