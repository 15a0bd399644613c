//! The spellings of a vocabulary, by id and by spelling, in one block of memory.
//!
//! A vocabulary of a quarter of a million entries as a `Vec<String>` plus a `HashMap<String, u32>` costs tens of
//! megabytes, which WASM never gives back; this costs its text plus about thirteen bytes an entry. Knows no file format
//! and nothing of what the tokens are for.

use std::hash::{BuildHasher, RandomState};

use crate::error::{Error, Result};

/// No entry in this slot.
const FREE: u32 = u32::MAX;

/// Spellings by id and ids by spelling.
pub(crate) struct TokenTable {
    text: String,
    /// Where each token's spelling ends in `text`; it begins where the one before ends.
    ends: Vec<u32>,
    /// Open addressing with linear probing, at most half full; each slot holds an id or `FREE`.
    slots: Vec<u32>,
    hasher: RandomState,
}

impl TokenTable {
    /// A table of the spellings in the order of their ids. An empty spelling is a hole: it has an id but no way to it.
    /// Of two equal spellings the higher id is found.
    ///
    /// # Errors
    /// `MalformedFile` when the spellings together do not fit 32-bit offsets.
    pub(crate) fn new<S: AsRef<str>>(tokens: &[S]) -> Result<Self> {
        let bytes = tokens.iter().map(|token| token.as_ref().len() as u64).sum::<u64>();
        if bytes > u64::from(u32::MAX) || tokens.len() as u64 >= u64::from(FREE) / 4 {
            return Err(Error::malformed(format!(
                "a vocabulary fits 4 GiB of text and a billion tokens; this one has {bytes} bytes in {} tokens",
                tokens.len()
            )));
        }
        let mut table = Self {
            text: String::with_capacity(bytes as usize),
            ends: Vec::with_capacity(tokens.len()),
            slots: vec![FREE; (tokens.len() * 2).next_power_of_two().max(2)],
            hasher: RandomState::new(),
        };
        for token in tokens {
            table.text.push_str(token.as_ref());
            table.ends.push(table.text.len() as u32);
        }
        for (id, token) in tokens.iter().enumerate() {
            if !token.as_ref().is_empty() {
                let slot = table.slot(token.as_ref());
                if let Some(place) = table.slots.get_mut(slot) {
                    *place = id as u32;
                }
            }
        }
        Ok(table)
    }

    /// How many ids there are, holes included.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The spelling of `id`; `None` for a hole and outside the vocabulary.
    pub(crate) fn get(&self, id: u32) -> Option<&str> {
        let end = *self.ends.get(id as usize)? as usize;
        let start =
            (id as usize).checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |start| *start as usize);
        self.text.get(start..end).filter(|spelling| !spelling.is_empty())
    }

    /// The id of exactly this spelling.
    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        if token.is_empty() {
            return None;
        }
        self.slots.get(self.slot(token)).copied().filter(|&id| id != FREE)
    }

    /// Every id with its spelling, holes left out.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..self.len() as u32).filter_map(|id| self.get(id).map(|token| (id, token)))
    }

    /// The slot that holds `token`, or the free one where it belongs. Ends, since half of the slots are free.
    fn slot(&self, token: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(token) as usize & mask;
        while let Some(&id) = self.slots.get(slot) {
            if id == FREE || self.get(id) == Some(token) {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_spelling_is_found_and_no_other() {
        let tokens: Vec<String> = (0..5000).map(|n| format!("t{n}é")).collect();
        let table = TokenTable::new(&tokens).unwrap();
        assert_eq!(table.len(), 5000);
        for (id, token) in tokens.iter().enumerate() {
            assert_eq!(table.id(token), Some(id as u32));
            assert_eq!(table.get(id as u32), Some(token.as_str()));
        }
        assert_eq!(table.id("t5000é"), None);
        assert_eq!(table.id("t1"), None);
        assert_eq!(table.get(5000), None);
        assert_eq!(table.get(u32::MAX), None);
    }

    #[test]
    fn holes_have_no_spelling_and_of_equal_spellings_the_higher_id_wins() {
        let table = TokenTable::new(&["a", "", "b", "a"]).unwrap();
        assert_eq!(table.id("a"), Some(3));
        assert_eq!(table.get(0), Some("a"));
        assert_eq!(table.get(1), None);
        assert_eq!(table.id(""), None);
        assert_eq!(table.iter().count(), 3);
        let empty: [&str; 0] = [];
        assert_eq!(TokenTable::new(&empty).unwrap().id("a"), None);
    }
}
