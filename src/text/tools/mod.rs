//! Functions that a model may call: what they are, how each family of models writes a call, and reading calls from an
//! answer as it streams. A family is a row of [`TOOL_FORMATS`] and a file; nothing elsewhere asks which one it is.
//!
//! Knows no sampler and no grammar engine.

mod calls;
mod deepseek;
mod functools;
mod generic;
mod hermes;
mod llama;
mod mistral;
mod mistral_args;
mod parser;
mod phi;
mod scan;

pub use calls::{Tool, ToolCall, ToolCallDelta, ToolChoice};
pub use generic::{instruct, rewrite_history};
pub(crate) use parser::{Part, ToolParser};

/// How a family of models writes calls.
pub struct ToolFormat {
    /// Its name, for diagnostics.
    pub name: &'static str,
    /// Whether a template that mentions tools is written for it.
    pub matches: fn(&str) -> bool,
    /// What opens a block of calls.
    pub open: &'static [&'static str],
    /// What closes one; without, it lasts to the end of the answer.
    pub close: &'static [&'static str],
    /// Whether a call may also be the whole answer, with no opening.
    pub bare: bool,
    /// Finds the function's name in what stands before a call's arguments; `None` where the call is an object that
    /// holds both.
    pub heading: Option<fn(&str) -> Option<&str>>,
    /// Whether the template prints the tools that the system message has, not those of the conversation.
    pub in_system: bool,
    /// How a call is written when the model has to make one.
    pub writing: Writing,
}

/// The text around calls that a model has to make.
pub struct Writing {
    /// Before the first call.
    pub begin: &'static str,
    /// Before the name of a function.
    pub before_name: &'static str,
    /// Between name and arguments.
    pub before_arguments: &'static str,
    /// After the arguments.
    pub after_arguments: &'static str,
    /// Between two calls; `None` where there can be one only.
    pub between: Option<&'static str>,
    /// After the last call.
    pub end: &'static str,
}

/// Every family, the more special ones first; the last one serves templates that know no tools.
pub static TOOL_FORMATS: &[&ToolFormat] = &[
    &mistral_args::FORMAT,
    &mistral::FORMAT,
    &deepseek::FORMAT,
    &phi::FORMAT,
    &functools::FORMAT,
    &hermes::FORMAT,
    &llama::FORMAT,
    &generic::FORMAT,
];

impl ToolFormat {
    /// The family that a template's source is written for: the generic one when it mentions no tools or none that is known.
    #[must_use]
    pub fn of_template(source: &str) -> &'static Self {
        let known = TOOL_FORMATS.iter().filter(|_| mentions_tools(source)).find(|format| (format.matches)(source));
        known.copied().unwrap_or(&generic::FORMAT)
    }

    /// Whether it is for templates that cannot tell a model of tools.
    #[must_use]
    pub fn is_generic(&self) -> bool {
        std::ptr::eq(self, &generic::FORMAT)
    }

    /// Every marker that it writes or reads: control tokens with these spellings belong to the answer's text.
    pub fn markers(&self) -> impl Iterator<Item = &'static str> {
        let writing = &self.writing;
        let parts =
            [writing.begin, writing.before_name, writing.before_arguments, writing.after_arguments, writing.end];
        self.open.iter().chain(self.close).copied().chain(parts).filter(|part| !part.is_empty())
    }
}

/// Whether `tools` is a word of the source.
fn mentions_tools(source: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices("tools").any(|(at, word)| {
        let before = source.get(..at).and_then(|text| text.chars().next_back());
        let after = source.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests;
