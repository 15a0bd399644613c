//! What a generation comes to, with the JSON names of the JS API.

use serde::Serialize;

use super::logprobs::TokenLogprob;
use crate::backend::KernelTime;
use crate::text::ToolCall;

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended its turn, or a stop string came.
    Stop,
    /// `max_tokens` tokens were produced.
    Length,
    /// The model called functions, each call whole.
    ToolCalls,
    /// It was called off.
    Abort,
    /// The context window is full.
    Context,
}

impl FinishReason {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::Abort => "abort",
            Self::Context => "context",
        }
    }
}

/// Tokens counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the prompt, with its template.
    pub prompt_tokens: usize,
    /// Tokens produced, without the one that ended the turn.
    pub completion_tokens: usize,
    /// Of the prompt, tokens that were still in the cache and not run again.
    pub cached_tokens: usize,
}

/// Times and rates.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Milliseconds from the start to the first token; to the end when there was none.
    pub time_to_first_token_ms: f64,
    /// Milliseconds for the prompt, up to the first token.
    pub prompt_ms: f64,
    /// Milliseconds from the first token to the end of the answer.
    pub decode_ms: f64,
    /// Prompt tokens run per second; 0 when that was not measured, for want of a token after them.
    pub prompt_tokens_per_second: f64,
    /// Tokens produced per second after the first one; 0 when there was none.
    pub decode_tokens_per_second: f64,
    /// What ran the model.
    pub backend: String,
    /// Threads that computed, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Tokens guessed ahead, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drafted_tokens: Option<usize>,
    /// Of those guessed, the ones that were right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_tokens: Option<usize>,
    /// Time by kernel, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<Vec<KernelTime>>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateResult {
    /// The text: the pieces, joined.
    pub text: String,
    /// What the model thought before it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The functions it called; the last call may be cut where `finish_reason` is not `ToolCalls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// The tokens produced, without the one that ended the turn.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// Tokens counted.
    pub usage: Usage,
    /// One entry per token, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<TokenLogprob>>,
    /// Times and rates.
    pub stats: Stats,
}
