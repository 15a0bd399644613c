//! A rendered conversation: text that remembers which of its control-token spellings a user typed.

use std::ops::Range;

/// A stretch of rendered text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The text.
    pub text: String,
    /// Whether control tokens spelled in it count. They count only where they lie wholly in trusted text.
    pub trusted: bool,
}

/// A rendered conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// In order; neighbours differ in trust.
    pub segments: Vec<Segment>,
}

impl Rendered {
    /// Appends `text`, to the last segment when that has the same trust.
    pub fn push(&mut self, text: &str, trusted: bool) {
        if text.is_empty() {
            return;
        }
        match self.segments.last_mut() {
            Some(last) if last.trusted == trusted => last.text.push_str(text),
            _ => self.segments.push(Segment { text: text.to_string(), trusted }),
        }
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> String {
        self.segments.iter().map(|segment| segment.text.as_str()).collect()
    }

    /// The byte ranges of the untrusted segments in [`Rendered::text`], in order.
    #[must_use]
    pub fn untrusted_ranges(&self) -> Vec<Range<usize>> {
        let mut at = 0;
        let mut ranges = Vec::new();
        for segment in &self.segments {
            let end = at + segment.text.len();
            if !segment.trusted {
                ranges.push(at..end);
            }
            at = end;
        }
        ranges
    }
}
