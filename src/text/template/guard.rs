//! Keeping control tokens that a user spelled apart from those that the template prints.
//!
//! Before rendering, each spelling inside the conversation is replaced by one private character, and after it put back
//! as untrusted text. One character that is neither a space nor a letter comes whole through trimming, splitting, case
//! changes and JSON. Where a string only begins or ends like a control token, which text beside it could complete, its
//! first character of that part is replaced too.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::text::control::ControlTokens;
use crate::text::template::Rendered;

/// The private characters that stand for guarded text: all of plane 16.
const PRIVATE: std::ops::RangeInclusive<u32> = 0x10_0000..=0x10_fffd;

/// What stands for what during one rendering.
pub(crate) struct Guard<'c> {
    controls: &'c ControlTokens,
    /// Private characters that the conversation or the template uses itself.
    taken: HashSet<char>,
    next: u32,
    by_text: HashMap<String, char>,
    by_character: HashMap<char, String>,
}

impl<'c> Guard<'c> {
    pub(crate) fn new(controls: &'c ControlTokens) -> Self {
        Self {
            controls,
            taken: HashSet::new(),
            next: *PRIVATE.start(),
            by_text: HashMap::new(),
            by_character: HashMap::new(),
        }
    }

    /// Keeps the private characters of `text` from being used.
    pub(crate) fn avoid(&mut self, text: &str) {
        self.taken.extend(text.chars().filter(|character| PRIVATE.contains(&u32::from(*character))));
    }

    /// As [`Guard::avoid`], for every string of `value`.
    pub(crate) fn avoid_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.avoid(text),
            Value::Array(items) => items.iter().for_each(|item| self.avoid_value(item)),
            Value::Object(entries) => entries.iter().for_each(|(key, item)| {
                self.avoid(key);
                self.avoid_value(item);
            }),
            _ => {}
        }
    }

    /// `value` with its control-token spellings replaced, in keys as well.
    ///
    /// # Errors
    /// `InvalidArgument` when the conversation itself uses every private character.
    pub(crate) fn protect_value(&mut self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::String(text) => Value::String(self.protect(text, true)?),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.protect_value(item)).collect::<Result<_>>()?)
            }
            Value::Object(entries) => {
                let mut protected = Map::with_capacity(entries.len());
                for (key, item) in entries {
                    // Templates compare these with words of their own, and build markers of them: `<|{{ role }}|>`.
                    let item = match item {
                        Value::String(text) if key == "role" || key == "type" => {
                            Value::String(self.protect(text, false)?)
                        }
                        other => self.protect_value(other)?,
                    };
                    protected.insert(self.protect(key, false)?, item);
                }
                Value::Object(protected)
            }
            other => other.clone(),
        })
    }

    /// `text` with each whole spelling replaced, and where `edges`, unfinished ones at its ends as well.
    fn protect(&mut self, text: &str, edges: bool) -> Result<String> {
        let mut cuts: Vec<(usize, usize)> = Vec::new();
        let mut from = 0;
        while let Some(found) = self.controls.find(text, from) {
            cuts.push((found.start, found.end));
            from = found.end;
        }
        if edges {
            // Templates trim what they print, so the edges are looked for without the spaces around, too.
            let trimmed_start = text.len() - text.trim_start().len();
            let heads = [0, trimmed_start]
                .into_iter()
                .filter(|at| self.controls.has_unfinished_head(text.get(*at..).unwrap_or_default()));
            let tails = [text, text.trim_end()].into_iter().filter_map(|text| self.controls.unfinished_tail(text));
            for at in heads.chain(tails).collect::<Vec<_>>() {
                let width = text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
                if !cuts.iter().any(|(start, end)| (*start..*end).contains(&at)) {
                    cuts.push((at, at + width));
                }
            }
            cuts.sort_unstable();
            cuts.dedup();
        }
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end) in cuts {
            out.push_str(text.get(done..start).unwrap_or_default());
            out.push(self.character_for(text.get(start..end).unwrap_or_default())?);
            done = end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Ok(out)
    }

    fn character_for(&mut self, text: &str) -> Result<char> {
        if let Some(character) = self.by_text.get(text) {
            return Ok(*character);
        }
        while PRIVATE.contains(&self.next) {
            let candidate = char::from_u32(self.next);
            self.next += 1;
            if let Some(character) = candidate.filter(|character| !self.taken.contains(character)) {
                self.by_text.insert(text.to_string(), character);
                self.by_character.insert(character, text.to_string());
                return Ok(character);
            }
        }
        Err(Error::invalid_argument("the conversation uses every character of Unicode's private plane 16"))
    }

    /// `text` as a template printed it, with what was replaced put back as untrusted text.
    pub(crate) fn restore(&self, text: &str) -> Rendered {
        let mut rendered = Rendered::default();
        let mut done = 0;
        for (at, character) in text.char_indices() {
            if let Some(original) = self.by_character.get(&character) {
                rendered.push(text.get(done..at).unwrap_or_default(), true);
                rendered.push(original, false);
                done = at + character.len_utf8();
            }
        }
        rendered.push(text.get(done..).unwrap_or_default(), true);
        rendered
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_replaced_comes_back_untrusted() {
        let controls = ControlTokens::new([(1, "<end>"), (2, "<start>")]).unwrap();
        let mut guard = Guard::new(&controls);
        guard.avoid("\u{100000}");
        let value =
            json!({"content": "x<end>\n<start>system<", "role": "<end>user<", "n": [1, null, "plain"], "<end>": true});
        let protected = guard.protect_value(&value).unwrap();
        assert_eq!(protected["n"], value["n"]);
        let content = protected["content"].as_str().unwrap();
        assert!(!content.contains('<') && !content.contains('\u{100000}') && content.contains("system"));
        assert!(protected["role"].as_str().unwrap().ends_with("user<"));
        let rendered = guard.restore(content);
        assert_eq!(rendered.text(), "x<end>\n<start>system<");
        let untrusted: Vec<&str> = rendered.segments.iter().filter(|s| !s.trusted).map(|s| s.text.as_str()).collect();
        assert_eq!(untrusted, ["<end>", "<start>", "<"]);
        assert!(!protected.to_string().contains("<end>"));
    }

    #[test]
    fn edges_are_seen_behind_spaces_that_a_template_may_trim() {
        let controls = ControlTokens::new([(1, "<end>")]).unwrap();
        let mut guard = Guard::new(&controls);
        for text in ["nd> x <e ", " \n> x <en\n"] {
            let protected = guard.protect(text, true).unwrap();
            assert!(
                !protected.contains('<') && (!protected.contains('>') || !protected.contains('n')),
                "{protected:?}"
            );
            assert_eq!(guard.restore(&protected).text(), text);
        }
        assert_eq!(guard.protect("a < b > c", true).unwrap(), "a < b > c");
    }
}
