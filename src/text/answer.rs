//! What an answer's text means, as it streams: thoughts, calls of functions, and the answer proper. Knows no tokens.

use super::reasoning::{Reasoning, Stretch};
use super::tools::{Tool, ToolCall, ToolCallDelta, ToolFormat, ToolParser};

/// A stretch of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerPart {
    /// The answer proper.
    Text(String),
    /// Thoughts before it.
    Thought(String),
    /// More of a call.
    Call(ToolCallDelta),
}

/// Reads one answer. The default one takes everything for the answer proper.
#[derive(Default)]
pub struct AnswerReader {
    reasoning: Option<Reasoning>,
    tools: Option<ToolParser>,
}

impl AnswerReader {
    /// For an answer to a prompt that ends with `prompt_end` and was rendered by a template of this source.
    #[must_use]
    pub fn with_thoughts(template: &str, prompt_end: &str) -> Self {
        Self { reasoning: Reasoning::new(template, prompt_end), tools: None }
    }

    /// Reads calls of `tools` too; `seed` makes their ids.
    #[must_use]
    pub fn with_tools(mut self, format: &'static ToolFormat, tools: &[Tool], seed: u64) -> Self {
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        self.tools = Some(ToolParser::new(format, names, seed));
        self
    }

    /// Whether the answer proper has not begun yet.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        self.reasoning.as_ref().is_some_and(Reasoning::is_thinking)
    }

    /// The calls so far, also one that was cut.
    #[must_use]
    pub fn calls(&self) -> Vec<ToolCall> {
        self.tools.as_ref().map(ToolParser::calls).unwrap_or_default()
    }

    /// Whether there are calls and all are whole.
    #[must_use]
    pub fn has_whole_calls(&self) -> bool {
        self.tools.as_ref().is_some_and(ToolParser::is_complete)
    }

    /// Takes the next piece; answers what is certain.
    pub fn push(&mut self, piece: &str) -> Vec<AnswerPart> {
        let mut stretches = Vec::new();
        match &mut self.reasoning {
            Some(reasoning) => reasoning.push(piece, &mut stretches),
            None => stretches.push(Stretch::Answer(piece.to_owned())),
        }
        self.read(stretches)
    }

    /// What was held back, when no more text comes.
    pub fn finish(&mut self) -> Vec<AnswerPart> {
        let mut stretches = Vec::new();
        if let Some(reasoning) = &mut self.reasoning {
            reasoning.finish(&mut stretches);
        }
        let mut parts = self.read(stretches);
        if let Some(tools) = &mut self.tools {
            let mut rest = Vec::new();
            tools.finish(&mut rest);
            parts.extend(rest.into_iter().map(from_tools));
        }
        parts
    }

    fn read(&mut self, stretches: Vec<Stretch>) -> Vec<AnswerPart> {
        let mut parts = Vec::new();
        for stretch in stretches {
            match (stretch, &mut self.tools) {
                (Stretch::Thought(text), _) => parts.push(AnswerPart::Thought(text)),
                (Stretch::Answer(text), None) => parts.push(AnswerPart::Text(text)),
                (Stretch::Answer(text), Some(tools)) => {
                    let mut read = Vec::new();
                    tools.push(&text, &mut read);
                    parts.extend(read.into_iter().map(from_tools));
                }
            }
        }
        parts
    }
}

fn from_tools(part: super::tools::Part) -> AnswerPart {
    match part {
        super::tools::Part::Text(text) => AnswerPart::Text(text),
        super::tools::Part::Call(delta) => AnswerPart::Call(delta),
    }
}
