//! The control tokens of a vocabulary and where a text spells them, whole or in part. Knows nothing of templates.

use aho_corasick::{AhoCorasick, Input, MatchKind};

use crate::error::{Error, Result};

/// A place in a text that spells a control token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlMatch {
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends, in bytes.
    pub end: usize,
    /// The token.
    pub id: u32,
}

/// The control tokens of a vocabulary (begin and end of text, turn markers, …).
pub struct ControlTokens {
    ids: Vec<u32>,
    matcher: Option<AhoCorasick>,
    /// The spellings in order, and reversed in order: a search of either finds what begins or ends with a text.
    forward: Vec<String>,
    backward: Vec<String>,
    longest_bytes: usize,
}

impl ControlTokens {
    /// The control tokens given as (id, spelling); empty spellings are left out.
    ///
    /// # Errors
    /// `MalformedFile` when they are too many to search for.
    pub fn new<'t>(tokens: impl IntoIterator<Item = (u32, &'t str)>) -> Result<Self> {
        let (ids, spellings): (Vec<u32>, Vec<&str>) =
            tokens.into_iter().filter(|(_, spelling)| !spelling.is_empty()).unzip();
        let matcher = (!ids.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&spellings))
            .transpose()
            .map_err(|error| Error::malformed("the control tokens cannot be searched for").because(error))?;
        let mut forward: Vec<String> = spellings.iter().map(|spelling| spelling.to_string()).collect();
        let mut backward: Vec<String> = spellings.iter().map(|spelling| spelling.chars().rev().collect()).collect();
        forward.sort_unstable();
        backward.sort_unstable();
        let longest_bytes = spellings.iter().map(|spelling| spelling.len()).max().unwrap_or(0);
        Ok(Self { ids, matcher, forward, backward, longest_bytes })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The tokens.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The first control token spelled in `text` at or after the byte `from`, the longest of those that begin there.
    #[must_use]
    pub fn find(&self, text: &str, from: usize) -> Option<ControlMatch> {
        if from > text.len() {
            return None;
        }
        let found = self.matcher.as_ref()?.find(Input::new(text).range(from..))?;
        let id = *self.ids.get(found.pattern().as_usize())?;
        Some(ControlMatch { start: found.start(), end: found.end(), id })
    }

    /// Where the longest unfinished spelling at the end of `text` begins: what follows could complete it.
    #[must_use]
    pub fn unfinished_tail(&self, text: &str) -> Option<usize> {
        let earliest = text.len().saturating_sub(self.longest_bytes.saturating_sub(1));
        (earliest..text.len())
            .filter_map(|at| text.get(at..).map(|tail| (at, tail)))
            .find(|(_, tail)| longer_begins_with(&self.forward, tail))
            .map(|(at, _)| at)
    }

    /// Whether `text` begins with the end of a spelling: what comes before could complete it.
    #[must_use]
    pub fn has_unfinished_head(&self, text: &str) -> bool {
        let mut head = String::new();
        for character in text.chars() {
            head.insert(0, character);
            if head.len() >= self.longest_bytes {
                return false;
            }
            if longer_begins_with(&self.backward, &head) {
                return true;
            }
        }
        false
    }
}

/// Whether one of the `sorted` spellings begins with `start` and goes on.
fn longer_begins_with(sorted: &[String], start: &str) -> bool {
    let at = sorted.partition_point(|spelling| spelling.as_str() <= start);
    sorted.get(at).is_some_and(|spelling| spelling.starts_with(start))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tokens() -> ControlTokens {
        ControlTokens::new([(1, "<|end|>"), (2, "<|end|>!"), (5, "<s>"), (6, "")]).unwrap()
    }

    #[test]
    fn the_longest_spelling_is_found_from_any_place() {
        let found = tokens().find("a<|end|>!<s>", 0).unwrap();
        assert_eq!((found.start, found.end, found.id), (1, 9, 2));
        assert_eq!(tokens().find("a<|end|>!<s>", 2).map(|found| found.id), Some(5));
        assert_eq!(tokens().find("a<|end|>", 2), None);
        assert_eq!(tokens().find("a", 9), None);
        assert!(ControlTokens::new([]).unwrap().find("<s>", 0).is_none());
    }

    #[test]
    fn spellings_cut_at_an_end_of_the_text_are_seen() {
        assert_eq!(tokens().unfinished_tail("ab<|en"), Some(2));
        assert_eq!(tokens().unfinished_tail("ab<"), Some(2));
        assert_eq!(tokens().unfinished_tail("x<|end|>"), Some(1));
        assert_eq!(tokens().unfinished_tail("x<s>"), None);
        assert_eq!(tokens().unfinished_tail("é"), None);
        assert!(tokens().has_unfinished_head("nd|> b"));
        assert!(tokens().has_unfinished_head(">"));
        assert!(tokens().has_unfinished_head("!"));
        assert!(!tokens().has_unfinished_head("s x"));
        assert!(!tokens().has_unfinished_head(""));
        assert!(!tokens().has_unfinished_head("é>"));
    }
}
