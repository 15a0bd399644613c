//! Grammars that an answer has to follow: what a caller may ask for, its checks, and the engine that turns a grammar into
//! a [`TokenConstraint`](super::constraint::TokenConstraint). Knows nothing of sampling.

#[cfg(any(not(target_arch = "wasm32"), feature = "grammar-module"))]
mod compile;
mod response_format;
mod schema;
#[cfg(any(not(target_arch = "wasm32"), feature = "grammar-module"))]
#[cfg_attr(target_arch = "wasm32", path = "stack_web.rs")]
mod stack;
mod tool_calls;
mod vocabulary;

#[cfg(any(not(target_arch = "wasm32"), feature = "grammar-module"))]
pub use compile::GrammarCompiler;
pub(crate) use schema::prepare as prepare_schema;
pub use vocabulary::TokenVocabulary;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most bytes of a schema, and of a regular expression, whose compilation may take time and memory by the square of
/// its length.
pub(crate) const MOST_SCHEMA_BYTES: usize = 256 << 10;
pub(crate) const MOST_REGEX_BYTES: usize = 4 << 10;

/// A language that the whole answer must be in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grammar {
    /// JSON values that a JSON schema accepts, on one line with a space after commas and colons.
    JsonSchema(Value),
    /// What a regular expression matches from beginning to end.
    Regex(String),
    /// What the rule `start` of a grammar in Lark's notation derives.
    Lark(String),
    /// Calls of functions, made by [`Grammar::of_calls`].
    Calls(String),
}
