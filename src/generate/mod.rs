//! From a prompt's ids to a stream of text: options, sampling, stop strings, the token history of the KV cache, and the
//! step machine that drives an [`Executable`](crate::backend::Executable).
//!
//! Knows backends only through that trait, takes the time from a function it is given, and does no IO.

#[cfg(test)]
mod answer_tests;
mod cache;
mod constraint;
mod draft;
mod embedding;
mod grammar;
mod logprobs;
mod options;
mod options_json;
mod pieces;
mod result;
mod run;
mod sampler;
mod stop;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod tests;

pub use cache::TokenCache;
pub use constraint::{Permission, RemoteConstraint, TokenConstraint, TokenMask};
pub use embedding::{Embedding, Pooling, VectorForm};
#[cfg(any(not(target_arch = "wasm32"), feature = "grammar-module"))]
pub use grammar::GrammarCompiler;
pub use grammar::{Grammar, TokenVocabulary};
pub use logprobs::{LOGPROB_FLOOR, TokenLogprob, log_softmax_of};
pub use options::{
    DEFAULT_DRAFT_TOKENS, GenerateOptions, MAX_DRAFT_TOKENS, MAX_TOP_LOGPROBS, SamplingDefaults, Settings,
};
pub use pieces::{NoText, Pieces, TextPieces};
pub use result::{FinishReason, GenerateResult, Stats, Usage};
pub use run::{AbortFlag, Event, Generation, GenerationContext};
pub use sampler::{History, Sampler};
pub use stop::StopMatcher;
