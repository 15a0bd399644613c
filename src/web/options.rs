//! The JSON that JS sends, as plain data. Names are those of `js/protocol.ts`.

use crate::engine::{ChatOptions, EdgeConfig, EmbedInput, EmbedOptions, Rejection};
use crate::error::{Error, Result};
use crate::generate::GenerateOptions;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What a loader is told.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoaderOptions {
    backend: String,
    lengths: Vec<Option<u64>>,
    rejected: Vec<Rejection>,
    engine: EngineOptions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EngineOptions {
    kv_cache: String,
    quantization: String,
    max_context_tokens: Option<usize>,
    max_memory_bytes: Option<u64>,
    prefix_cache_bytes: Option<u64>,
    threads: Option<usize>,
    chat_template: Option<String>,
}

/// What the engine's loader takes.
pub struct LoaderInput {
    /// The user's choices.
    pub config: EdgeConfig,
    /// Sizes of the files.
    pub lengths: Vec<Option<u64>>,
    /// Backends ruled out in JS, by their names here.
    pub rejected: Vec<Rejection>,
}

impl LoaderOptions {
    /// As the engine takes them.
    ///
    /// # Errors
    /// A name that is none.
    pub fn into_input(self) -> Result<LoaderInput> {
        let engine = self.engine;
        let config = EdgeConfig {
            backend: self.backend.parse()?,
            kv_cache: engine.kv_cache.parse()?,
            quantization: engine.quantization.parse()?,
            max_context_tokens: engine.max_context_tokens.unwrap_or(0),
            max_memory_bytes: engine.max_memory_bytes.unwrap_or(0),
            prefix_cache_bytes: engine.prefix_cache_bytes,
            threads: engine.threads.unwrap_or(0),
            chat_template: engine.chat_template,
            ..EdgeConfig::default()
        };
        let rejected =
            self.rejected.into_iter().map(|row| Rejection { backend: name_here(row.backend), ..row }).collect();
        Ok(LoaderInput { config, lengths: self.lengths, rejected })
    }
}

fn name_here(backend: String) -> String {
    if backend == "webgpu" { "wgpu".to_owned() } else { backend }
}

/// What to generate.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum GenerateRequest {
    /// The next turn of a conversation.
    Chat {
        /// The turns, as the template sees them.
        messages: Vec<Value>,
        /// What else a chat takes.
        #[serde(flatten)]
        chat: ChatRequest,
        /// How tokens are chosen.
        sampling: Value,
    },
    /// A text to continue.
    Complete {
        /// The text.
        prompt: String,
        /// How tokens are chosen.
        sampling: Value,
    },
}

/// The options of a chat alone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatRequest {
    /// Further variables of the template.
    #[serde(default)]
    template_kwargs: Map<String, Value>,
    tools: Option<Value>,
    tool_choice: Option<Value>,
    prefill: Option<String>,
}

impl From<ChatRequest> for ChatOptions {
    fn from(request: ChatRequest) -> Self {
        let ChatRequest { template_kwargs, tools, tool_choice, prefill } = request;
        Self { template_kwargs, tools, tool_choice, prefill, ..Self::default() }
    }
}

impl GenerateRequest {
    /// How tokens are chosen.
    ///
    /// # Errors
    /// An option is unknown or of the wrong type.
    pub fn sampling(&self) -> Result<GenerateOptions> {
        let (Self::Chat { sampling, .. } | Self::Complete { sampling, .. }) = self;
        GenerateOptions::from_json(sampling)
    }
}

/// What to embed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbedRequest {
    inputs: Vec<Value>,
    pooling: Option<String>,
    normalize: bool,
    dimensions: Option<u32>,
    truncate: bool,
}

impl EmbedRequest {
    /// As the engine takes them.
    ///
    /// # Errors
    /// A name that is none, or an input that is neither a text nor a list of ids.
    pub fn into_parts(self) -> Result<(Vec<EmbedInput>, EmbedOptions)> {
        let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok());
        let input = |input| match input {
            Value::String(text) => Some(EmbedInput::Text(text)),
            Value::Array(ids) => Some(EmbedInput::Tokens(ids.iter().map(id).collect::<Option<_>>()?)),
            _ => None,
        };
        let inputs = self.inputs.into_iter().map(input).collect::<Option<_>>();
        let inputs = inputs.ok_or_else(|| Error::internal("an input is neither a text nor a list of ids"))?;
        let pooling = self.pooling.map(|name| name.parse()).transpose()?;
        let (normalize, dimensions, truncate) = (self.normalize, self.dimensions, self.truncate);
        Ok((inputs, EmbedOptions { pooling, normalize, dimensions, truncate }))
    }
}

/// Reads JSON from JS; what does not fit, but for its depth, is a fault of the package.
///
/// # Errors
/// The text is not the JSON of a `T`.
pub fn parse<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| match error.to_string() {
        message if message.contains("recursion limit") => {
            Error::invalid_argument("expected schemas, tools and messages at most 128 deep, found deeper ones")
        }
        message => Error::internal(format!("unexpected request: {message}")),
    })
}
