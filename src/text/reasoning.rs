//! What a model thinks before it answers, between `<think>` and `</think>`, told apart from the answer as it streams.
//! Where pieces end does not matter.

use crate::text::marker::{Search, search};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A stretch of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// Thoughts.
    Thought(String),
    /// The answer.
    Answer(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing but white space so far: thoughts may begin.
    Start,
    Thoughts,
    /// After the thoughts: white space before the answer is none of it.
    Between,
    Answer,
}

/// Splits one answer.
#[derive(Debug, Clone)]
pub(crate) struct Reasoning {
    place: Place,
    held: String,
    /// Whether a thought was given out: the white space at the beginning is none.
    has_thought: bool,
}

impl Reasoning {
    /// For an answer to a prompt that ends with `prompt_end`; `None` when the model's template knows no thoughts.
    pub(crate) fn new(template: &str, prompt_end: &str) -> Option<Self> {
        if !template.contains(OPEN) && !template.contains(CLOSE) {
            return None;
        }
        let prompt_end = prompt_end.trim_end();
        let place = if prompt_end.ends_with(OPEN) {
            Place::Thoughts
        } else if prompt_end.ends_with(CLOSE) {
            Place::Answer
        } else {
            Place::Start
        };
        Some(Self { place, held: String::new(), has_thought: false })
    }

    /// Whether the thoughts are not over yet.
    pub(crate) fn is_thinking(&self) -> bool {
        self.place == Place::Thoughts
    }

    /// Takes the next piece; gives what is certain.
    pub(crate) fn push(&mut self, piece: &str, out: &mut Vec<Stretch>) {
        self.held.push_str(piece);
        while self.step(out) {}
    }

    /// Gives what was held back, when no more text comes.
    pub(crate) fn finish(&mut self, out: &mut Vec<Stretch>) {
        let rest = std::mem::take(&mut self.held);
        match self.place {
            Place::Thoughts => self.think(rest.trim_end(), out),
            Place::Between => {}
            Place::Start | Place::Answer => answer(rest, out),
        }
    }

    /// One step; false when it needs more text.
    fn step(&mut self, out: &mut Vec<Stretch>) -> bool {
        match self.place {
            Place::Start => {
                let text = self.held.trim_start();
                if let Some(rest) = text.strip_prefix(OPEN) {
                    self.held = rest.to_owned();
                    self.place = Place::Thoughts;
                } else if OPEN.starts_with(text) {
                    return false;
                } else {
                    self.place = Place::Answer;
                }
                true
            }
            Place::Thoughts => self.thoughts(out),
            Place::Between => {
                self.held = self.held.trim_start().to_owned();
                if self.held.is_empty() {
                    return false;
                }
                self.place = Place::Answer;
                true
            }
            Place::Answer => {
                answer(std::mem::take(&mut self.held), out);
                false
            }
        }
    }

    fn thoughts(&mut self, out: &mut Vec<Stretch>) -> bool {
        let (end, next, found) = match search(&self.held, &[CLOSE]) {
            Search::Found { start, end, .. } => (start, end, true),
            Search::Open { from } => (from, from, false),
        };
        let thought = self.held.get(..end).unwrap_or_default().to_owned();
        // White space is given out with what follows it.
        let kept = thought.trim_end().len();
        let rest = if found { next } else { kept };
        self.held = self.held.get(rest..).unwrap_or_default().to_owned();
        self.think(thought.get(..kept).unwrap_or_default(), out);
        if found {
            self.place = Place::Between;
        }
        found
    }

    fn think(&mut self, thought: &str, out: &mut Vec<Stretch>) {
        let thought = if self.has_thought { thought } else { thought.trim_start() };
        if !thought.is_empty() {
            self.has_thought = true;
            out.push(Stretch::Thought(thought.to_owned()));
        }
    }
}

fn answer(text: String, out: &mut Vec<Stretch>) {
    if !text.is_empty() {
        out.push(Stretch::Answer(text));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TEMPLATE: &str = "{{ '<think>' }}";

    /// Thoughts and answer of `text` in pieces of every length.
    fn split(text: &str, prompt_end: &str) -> (String, String) {
        let mut results = (1..=text.len().max(1)).map(|length| {
            let mut reasoning = Reasoning::new(TEMPLATE, prompt_end).unwrap();
            let mut out = Vec::new();
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(length) {
                reasoning.push(&piece.iter().collect::<String>(), &mut out);
            }
            reasoning.finish(&mut out);
            let (mut thoughts, mut answer) = (String::new(), String::new());
            for stretch in out {
                match stretch {
                    Stretch::Thought(text) => thoughts.push_str(&text),
                    Stretch::Answer(text) => answer.push_str(&text),
                }
            }
            (thoughts, answer)
        });
        let first = results.next().unwrap();
        for other in results {
            assert_eq!(other, first, "{text}");
        }
        first
    }

    #[test]
    fn thoughts_are_split_off_wherever_pieces_end() {
        let pair = |thoughts: &str, answer: &str| (thoughts.to_owned(), answer.to_owned());
        assert_eq!(
            split("<think>\nWhy é?\n\nSo.\n</think>\n\nBecause.\n", "assistant\n"),
            pair("Why é?\n\nSo.", "Because.\n")
        );
        assert_eq!(split("\n<think></think>\n\nYes", ""), pair("", "Yes"));
        assert_eq!(split("hm</think>ok", "<think>\n"), pair("hm", "ok"));
        assert_eq!(split("no <think>tags</think> here", ""), pair("", "no <think>tags</think> here"));
        assert_eq!(split("<think>cut </thi", ""), pair("cut </thi", ""));
        assert_eq!(split("<thin", ""), pair("", "<thin"));
        assert_eq!(split("<think>x</think> y", "<think>\n\n</think>\n\n"), pair("", "<think>x</think> y"));
        assert!(Reasoning::new("{{ messages }}", "<think>").is_none());
    }
}
