//! Merging symbols into tokens for vocabularies that come from a model file: byte-level ones with a list of merges, and
//! SentencePiece-like ones with scores.
//!
//! It plugs into the library's pipeline as a model. The library's own would want each merge as two strings, which for
//! scores are every split of every token: half a million pairs for a vocabulary of a quarter of a million. Here a scored
//! pair is looked up by its joined spelling when text asks for it, so nothing is built, and a listed pair is four
//! integers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::text::bytes::{byte_to_char, to_byte_alphabet};
use crate::text::table::TokenTable;

/// No byte token.
const NONE: u32 = u32::MAX;
/// What SentencePiece writes for a space.
pub(crate) const SPACE: &str = "\u{2581}";

/// Which pairs merge, and which first.
pub(crate) enum Rule {
    /// Byte-level: the pair's rank in the list and the token it becomes.
    Ranks { merges: HashMap<(u32, u32), (u32, u32)>, ignore_merges: bool },
    /// SentencePiece-like: the joined spelling is a token; the highest score first.
    Scores { scores: Vec<f32>, is_normal: Vec<bool>, add_space_prefix: bool },
}

/// A merging model over a token table.
pub(crate) struct Merger {
    table: Arc<TokenTable>,
    rule: Rule,
    /// The token of each byte, `NONE` where the vocabulary has none.
    byte_ids: [u32; 256],
    unknown: Option<u32>,
}

/// One symbol of the text being merged; symbols form a list by index.
#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    start: usize,
    end: usize,
    prev: usize,
    next: usize,
    /// Neither a byte of a character outside the vocabulary nor an unknown: these stay as they are.
    merges: bool,
}

/// Merged away, or no neighbour.
const GONE: usize = usize::MAX;

/// A possible merge: what orders it, where its left symbol is, what it becomes.
type Candidate = Reverse<((u32, u32, u32), usize, u32)>;

impl Merger {
    /// A byte-level model. `merges` are "left right" in order of rank.
    ///
    /// # Errors
    /// `MalformedFile` for a merge without a space, or of or into a spelling that is no token.
    pub(crate) fn ranked(
        table: Arc<TokenTable>,
        merges: &[String],
        ignore_merges: bool,
        unknown: Option<u32>,
    ) -> Result<Self> {
        let mut ranks = HashMap::with_capacity(merges.len());
        let mut joined = String::new();
        for (rank, merge) in merges.iter().enumerate() {
            // A token may itself begin with a space in some files: the separator is the first space after it.
            let cut = merge.char_indices().skip(1).find(|&(_, c)| c == ' ').map(|(at, _)| at);
            let (left, right) = cut.and_then(|at| Some((merge.get(..at)?, merge.get(at + 1..)?))).ok_or_else(|| {
                Error::malformed(format!(
                    "merge {rank} should be two tokens with a space between them, found {merge:?}"
                ))
            })?;
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            let id = |token: &str| {
                table.id(token).ok_or_else(|| {
                    Error::malformed(format!(
                        "merge {rank}, {merge:?}, needs the token {token:?}, which the vocabulary lacks"
                    ))
                })
            };
            // Of a pair listed twice the later rank counts, as in the library.
            ranks.insert((id(left)?, id(right)?), (rank as u32, id(&joined)?));
        }
        let mut byte_ids = [NONE; 256];
        for (byte, place) in (0..=255u8).zip(byte_ids.iter_mut()) {
            *place = table.id(byte_to_char(byte).encode_utf8(&mut [0; 4])).unwrap_or(NONE);
        }
        Ok(Self { table, rule: Rule::Ranks { merges: ranks, ignore_merges }, byte_ids, unknown })
    }

    /// A SentencePiece-like model; the lists of its rule, [`Rule::Scores`], have one entry a token.
    pub(crate) fn scored(table: Arc<TokenTable>, rule: Rule, unknown: Option<u32>) -> Self {
        let mut byte_ids = [NONE; 256];
        for (byte, place) in (0..=255u8).zip(byte_ids.iter_mut()) {
            *place = table.id(&format!("<0x{byte:02X}>")).unwrap_or(NONE);
        }
        Self { table, rule, byte_ids, unknown }
    }

    pub(crate) fn table(&self) -> &TokenTable {
        &self.table
    }

    /// The ids of `word`, a piece that holds no added token.
    ///
    /// # Errors
    /// `UnsupportedModel` when a byte has no token and the vocabulary no unknown token.
    pub(crate) fn encode(&self, word: &str) -> Result<Vec<u32>> {
        if word.is_empty() {
            return Ok(Vec::new());
        }
        match &self.rule {
            Rule::Ranks { ignore_merges, .. } => {
                if *ignore_merges && let Some(id) = self.table.id(&to_byte_alphabet(word)) {
                    return Ok(vec![id]);
                }
                let symbols = self.byte_symbols(word)?;
                Ok(self.merge(word, symbols))
            }
            Rule::Scores { add_space_prefix, .. } => {
                let prefix = if *add_space_prefix { SPACE } else { "" };
                let text = format!("{prefix}{}", word.replace(' ', SPACE));
                let symbols = self.char_symbols(&text)?;
                Ok(self.merge(&text, symbols))
            }
        }
    }

    fn byte_symbols(&self, word: &str) -> Result<Vec<Symbol>> {
        let mut symbols = Vec::with_capacity(word.len());
        for (at, byte) in word.bytes().enumerate() {
            let id = self.byte_ids.get(usize::from(byte)).copied().unwrap_or(NONE);
            if id == NONE {
                self.push_unknown(&mut symbols, at, at + 1)?;
            } else {
                push(&mut symbols, id, at, at + 1, true);
            }
        }
        Ok(symbols)
    }

    fn char_symbols(&self, text: &str) -> Result<Vec<Symbol>> {
        let mut symbols = Vec::with_capacity(text.len());
        for (at, character) in text.char_indices() {
            let end = at + character.len_utf8();
            let spelling = text.get(at..end).unwrap_or_default();
            if let Some(id) = self.table.id(spelling) {
                push(&mut symbols, id, at, end, true);
                continue;
            }
            let bytes: Vec<u32> =
                spelling.bytes().map(|byte| self.byte_ids.get(usize::from(byte)).copied().unwrap_or(NONE)).collect();
            if bytes.contains(&NONE) {
                self.push_unknown(&mut symbols, at, end)?;
            } else {
                for (n, id) in bytes.into_iter().enumerate() {
                    push(&mut symbols, id, at + n, at + n + 1, false);
                }
            }
        }
        Ok(symbols)
    }

    /// Adds the unknown token, or lengthens the one just before.
    fn push_unknown(&self, symbols: &mut Vec<Symbol>, start: usize, end: usize) -> Result<()> {
        let Some(unknown) = self.unknown else {
            return Err(Error::unsupported(
                "the text has a character that the vocabulary can spell neither by bytes nor by an unknown token",
            ));
        };
        match symbols.last_mut() {
            Some(last) if last.id == unknown && !last.merges => last.end = end,
            _ => push(symbols, unknown, start, end, false),
        }
        Ok(())
    }

    /// What `left` and `right` merge into, and the order of that merge (lowest first).
    fn pair(&self, text: &str, left: Symbol, right: Symbol) -> Option<((u32, u32, u32), u32)> {
        if !left.merges || !right.merges {
            return None;
        }
        match &self.rule {
            Rule::Ranks { merges, .. } => merges.get(&(left.id, right.id)).map(|&(rank, id)| ((rank, 0, 0), id)),
            Rule::Scores { scores, is_normal, .. } => {
                let id = self.table.id(text.get(left.start..right.end)?)?;
                is_normal.get(id as usize).filter(|normal| **normal)?;
                let score = scores.get(id as usize).copied().unwrap_or(0.0);
                Some(((descending(score), left.id, right.id), id))
            }
        }
    }

    fn merge(&self, text: &str, mut symbols: Vec<Symbol>) -> Vec<u32> {
        let mut queue: BinaryHeap<Candidate> = BinaryHeap::new();
        for (at, pair) in symbols.windows(2).enumerate() {
            if let [left, right] = *pair
                && let Some((order, id)) = self.pair(text, left, right)
            {
                queue.push(Reverse((order, at, id)));
            }
        }
        while let Some(Reverse((_, at, id))) = queue.pop() {
            let Some((left, right)) = live_pair(&symbols, at) else { continue };
            // The pair here may have changed since: it counts while it still becomes the same token.
            if self.pair(text, left, right).is_none_or(|(_, now)| now != id) {
                continue;
            }
            let merged = Symbol { id, end: right.end, next: right.next, ..left };
            set(&mut symbols, left.next, Symbol { prev: GONE, next: GONE, start: GONE, ..right });
            set(&mut symbols, at, merged);
            if let Some(after) = symbols.get_mut(merged.next) {
                after.prev = at;
            }
            for at in [merged.prev, at] {
                if let Some((left, right)) = live_pair(&symbols, at)
                    && let Some((order, id)) = self.pair(text, left, right)
                {
                    queue.push(Reverse((order, at, id)));
                }
            }
        }
        symbols.iter().filter(|symbol| symbol.start != GONE).map(|symbol| symbol.id).collect()
    }
}

fn push(symbols: &mut Vec<Symbol>, id: u32, start: usize, end: usize, merges: bool) {
    let at = symbols.len();
    if let Some(last) = symbols.last_mut() {
        last.next = at;
    }
    symbols.push(Symbol { id, start, end, prev: at.checked_sub(1).unwrap_or(GONE), next: GONE, merges });
}

fn set(symbols: &mut [Symbol], at: usize, symbol: Symbol) {
    if let Some(place) = symbols.get_mut(at) {
        *place = symbol;
    }
}

/// The symbol at `at` and the next, unless it is merged away or the last.
fn live_pair(symbols: &[Symbol], at: usize) -> Option<(Symbol, Symbol)> {
    let left = symbols.get(at).filter(|symbol| symbol.start != GONE)?;
    let right = symbols.get(left.next)?;
    Some((*left, *right))
}

/// A number that is the lower the higher `score` is; NaN comes last.
fn descending(score: f32) -> u32 {
    if score.is_nan() {
        return u32::MAX;
    }
    let bits = (score + 0.0).to_bits();
    // Ascending order of floats as integers: flip all bits of a negative, the sign bit of a positive.
    let ascending = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    !ascending
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ranked(tokens: &[&str], merges: &[&str]) -> Result<Merger> {
        let merges: Vec<String> = merges.iter().map(|merge| merge.to_string()).collect();
        Merger::ranked(Arc::new(TokenTable::new(tokens).unwrap()), &merges, false, None)
    }

    #[test]
    fn the_lowest_rank_merges_first_and_from_the_left() {
        let merger = ranked(&["a", "b", "c", "ab", "bc", "abc", "aa"], &["b c", "a b", "a bc", "a a"]).unwrap();
        assert_eq!(merger.encode("abc").unwrap(), [5]);
        assert_eq!(merger.encode("ab").unwrap(), [3]);
        assert_eq!(merger.encode("aaa").unwrap(), [6, 0]);
        assert_eq!(merger.encode("aaab").unwrap(), [6, 3]);
        assert_eq!(merger.encode("").unwrap(), [0u32; 0]);
    }

    #[test]
    fn a_byte_without_a_token_is_an_error_unless_there_is_an_unknown_token() {
        let tokens = ["<unk>", "a"];
        assert_eq!(ranked(&tokens, &[]).unwrap().encode("az").unwrap_err().code(), "unsupported-model");
        let merger = Merger::ranked(Arc::new(TokenTable::new(&tokens).unwrap()), &[], false, Some(0)).unwrap();
        assert_eq!(merger.encode("azza").unwrap(), [1, 0, 1]);
    }

    #[test]
    fn broken_merges_are_refused_with_their_number() {
        for (merge, part) in
            [("ab", "two tokens"), ("a", "two tokens"), ("", "two tokens"), ("a x", "\"x\""), ("b a", "\"ba\"")]
        {
            let error = ranked(&["a", "b", "ab"], &["a b", merge]).err().unwrap();
            assert_eq!(error.code(), "malformed-file");
            assert!(error.message().contains("merge 1") && error.message().contains(part), "{merge:?}: {error}");
        }
    }

    #[test]
    fn the_highest_score_merges_first() {
        let tokens = ["a", "b", "c", "ab", "bc", "abc"];
        let table = Arc::new(TokenTable::new(&tokens).unwrap());
        let scores = vec![0.0, 0.0, 0.0, -2.0, -1.0, -3.0];
        let mut is_normal = vec![true; 6];
        let rule = |is_normal: &[bool]| Rule::Scores {
            scores: scores.clone(),
            is_normal: is_normal.to_vec(),
            add_space_prefix: false,
        };
        let merger = Merger::scored(table.clone(), rule(&is_normal), None);
        assert_eq!(merger.encode("abc").unwrap(), [5]);
        assert_eq!(merger.encode("cab").unwrap(), [2, 3]);
        is_normal[5] = false;
        assert_eq!(Merger::scored(table, rule(&is_normal), None).encode("abc").unwrap(), [0, 4]);
    }

    #[test]
    fn order_of_scores_holds_over_signs_and_special_values() {
        let scores = [f32::INFINITY, 3.0, 0.5, 0.0, -0.5, -3.0, f32::NEG_INFINITY, f32::NAN];
        assert!(scores.windows(2).all(|pair| descending(pair[0]) < descending(pair[1])));
        assert_eq!(descending(0.0), descending(-0.0));
    }

    #[test]
    fn characters_outside_the_vocabulary_fall_back_to_bytes() {
        let mut tokens = vec!["<unk>".to_string(), SPACE.to_string(), "h".to_string()];
        tokens.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
        let n = tokens.len();
        let table = Arc::new(TokenTable::new(&tokens).unwrap());
        let merger = Merger::scored(
            table,
            Rule::Scores { scores: vec![0.0; n], is_normal: vec![true; n], add_space_prefix: true },
            Some(0),
        );
        assert_eq!(merger.encode("hé h").unwrap(), [1, 2, 3 + 0xc3, 3 + 0xa9, 1, 2]);
    }

    #[test]
    fn a_long_word_takes_no_quadratic_time() {
        let merger = ranked(&["a", "aa", "aaaa"], &["a a", "aa aa"]).unwrap();
        let ids = merger.encode(&"a".repeat(1 << 20)).unwrap();
        assert_eq!(ids.len(), 1 << 18);
    }
}
