//! Text on its way to and from token ids: vocabularies, chat templates, streamed text.
//!
//! Pure and synchronous: no file format, no clock, no device. Everything here works the same natively and in WASM.

mod answer;
mod bytes;
mod control;
mod detokenizer;
mod json;
mod marker;
mod merge;
mod pipeline;
mod reasoning;
#[cfg(test)]
mod samples;
mod split;
mod table;
mod template;
mod tokenizer;
mod tools;
mod vocabulary;

pub use answer::{AnswerPart, AnswerReader};
pub use control::{ControlMatch, ControlTokens};
pub use detokenizer::{Detokenizer, Start};
pub use template::{ChatTemplate, Clock, RenderOptions, Rendered, Segment};
pub use tokenizer::{Special, Tokenizer};
pub use tools::{
    TOOL_FORMATS, Tool, ToolCall, ToolCallDelta, ToolChoice, ToolFormat, Writing, instruct, rewrite_history,
};
pub use vocabulary::Vocabulary;
