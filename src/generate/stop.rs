//! Stop strings in streamed text: holds back only what may still become one, and lets nothing of one through.
//! Knows text only as strings; where pieces end does not matter.

use crate::error::{Error, Result};

/// Watches a stream of pieces for the first of several stop strings.
#[derive(Debug, Clone)]
pub struct StopMatcher {
    stops: Vec<String>,
    /// Text not given out: a possible beginning of a stop string.
    held: String,
}

/// What a piece led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Text that is safe to give out.
    pub text: String,
    /// Whether a stop string was found; `text` ends before it, and nothing follows.
    pub stopped: bool,
}

impl StopMatcher {
    /// A matcher for `stops`; with none, everything passes at once.
    ///
    /// # Errors
    /// `invalid-argument` for an empty stop string.
    pub fn new(stops: &[String]) -> Result<Self> {
        if stops.iter().any(String::is_empty) {
            return Err(Error::invalid_argument("stop: expected strings of one character or more, found an empty one"));
        }
        Ok(Self { stops: stops.to_vec(), held: String::new() })
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str) -> Checked {
        self.held.push_str(piece);
        let first = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(start) = first {
            let text = self.held.get(..start).unwrap_or_default().to_owned();
            self.held.clear();
            return Checked { text, stopped: true };
        }
        let kept = self.stops.iter().map(|stop| tail_len(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - kept);
        Checked { text: std::mem::replace(&mut self.held, rest), stopped: false }
    }

    /// What was held back, when no more text comes.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// The bytes of the longest end of `text` that begins `stop`.
fn tail_len(text: &str, stop: &str) -> usize {
    let starts = stop.char_indices().map(|(start, _)| start).rev();
    starts.filter(|&len| len > 0).find(|&len| stop.get(..len).is_some_and(|start| text.ends_with(start))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The pieces given out, joined by `|`, and whether a stop was found.
    fn run(pieces: &[&str], stops: &[&str]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|&stop| stop.to_owned()).collect();
        let mut matcher = StopMatcher::new(&stops).unwrap();
        let mut given = Vec::new();
        let mut stopped = false;
        for piece in pieces {
            let checked = matcher.push(piece);
            given.push(checked.text);
            if checked.stopped {
                stopped = true;
                break;
            }
        }
        given.push(matcher.finish());
        (given.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("|"), stopped)
    }

    #[test]
    fn stops_over_token_borders_end_the_text_before_them() {
        let rows: &[(&[&str], &[&str], &str, bool)] = &[
            (&[" the", " planet", " Mars", "?\n"], &["?\n"], " the| planet| Mars", true),
            (&[" the", " planet", " Mars", "?\n"], &["\n"], " the| planet| Mars|?", true),
            (&["L", " M", " N", " O", " P", " Q"], &["O P Q"], "L| M| N| ", true),
            (&["UNO", " DUE", " TRE"], &["TRE\nAAAA"], "UNO| DUE| |TRE", false),
            (&["DEF", "G", "HI", "J"], &["DEFGHIJ"], "", true),
            (&["aa", "ab"], &["aab"], "a", true),
            (&[" Alice", "!"], &["\n", "Alice:"], " |Alice!", false),
            (&["one", " two"], &[], "one| two", false),
            (&["x caf", "é y"], &["é"], "x caf", true),
            (&["a🙂b"], &["🙂"], "a", true),
            (&["abcab"], &["cab", "bc"], "a", true),
            (&["aaaa"], &["aaaaaaab"], "aaaa", false),
            (&["aaaa", "aaaab"], &["aaaaaaab"], "a", true),
        ];
        for (pieces, stops, text, stopped) in rows {
            assert_eq!(run(pieces, stops), ((*text).to_owned(), *stopped), "{pieces:?} with {stops:?}");
        }
    }

    #[test]
    fn every_way_to_cut_a_text_gives_the_same() {
        let text = "ab aab aaab";
        for stop in ["aab", "aaab", "b a", "ab aab aaab", "zz"] {
            let whole = run(&[text], &[stop]);
            for first in 1..text.len() - 1 {
                for second in first + 1..text.len() {
                    let cut = run(&[&text[..first], &text[first..second], &text[second..]], &[stop]);
                    assert_eq!((cut.0.replace('|', ""), cut.1), (whole.0.replace('|', ""), whole.1));
                }
            }
        }
    }

    #[test]
    fn an_empty_stop_is_refused() {
        assert_eq!(StopMatcher::new(&[String::new()]).unwrap_err().code(), "invalid-argument");
    }
}
