//! The one way in which something may say which tokens an answer goes on with: a grammar, here or in another module.
//! Knows no grammar and no text.

use crate::backend::MaybeSend;
use crate::error::{Error, Result};

/// A set of token ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenMask(Vec<u32>);

impl TokenMask {
    /// The set whose member `id` is bit `id % 32` of word `id / 32`. Ids beyond the words are not in it.
    #[must_use]
    pub fn from_bits(words: Vec<u32>) -> Self {
        Self(words)
    }

    /// The set as bits; see [`TokenMask::from_bits`].
    #[must_use]
    pub fn into_bits(self) -> Vec<u32> {
        self.0
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Whether `id` is in it.
    #[must_use]
    pub fn allows(&self, id: u32) -> bool {
        self.0.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
    }

    /// Makes every other token impossible in `logits` `[vocab_size]`.
    pub fn apply(&self, logits: &mut [f32]) {
        for (id, logit) in (0u32..).zip(logits) {
            if !self.allows(id) {
                *logit = f32::NEG_INFINITY;
            }
        }
    }
}

/// What may come next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// Anything.
    Any,
    /// One of these; among them the end of the turn where the answer may end.
    Tokens(TokenMask),
    /// Nothing: the answer is complete.
    End,
    /// Whoever drives the generation has to say it, after these tokens, which came since it was asked last.
    Ask(Vec<u32>),
}

/// Says which tokens an answer goes on with.
pub trait TokenConstraint: MaybeSend {
    /// What may come next.
    ///
    /// # Errors
    /// The constraint became too complex to follow.
    fn permission(&mut self) -> Result<Permission>;

    /// Takes the next token of the answer, one that was permitted.
    ///
    /// # Errors
    /// The token was not permitted.
    fn accept(&mut self, token: u32) -> Result<()>;

    /// Takes the answer to [`Permission::Ask`]; an empty set means that the answer is complete.
    ///
    /// # Errors
    /// Nothing was asked.
    fn supply(&mut self, mask: TokenMask) -> Result<()> {
        drop(mask);
        Err(Error::internal("a mask was given that nobody asked for"))
    }
}

/// A constraint that is computed elsewhere: it only asks.
#[derive(Debug, Default)]
pub struct RemoteConstraint {
    accepted: Vec<u32>,
    supplied: Option<TokenMask>,
}

impl TokenConstraint for RemoteConstraint {
    fn permission(&mut self) -> Result<Permission> {
        Ok(match &self.supplied {
            None => Permission::Ask(std::mem::take(&mut self.accepted)),
            Some(mask) if mask.is_empty() => Permission::End,
            Some(mask) => Permission::Tokens(mask.clone()),
        })
    }

    fn accept(&mut self, token: u32) -> Result<()> {
        self.supplied = None;
        self.accepted.push(token);
        Ok(())
    }

    fn supply(&mut self, mask: TokenMask) -> Result<()> {
        self.supplied = Some(mask);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_mask_leaves_its_members_alone_and_nothing_else() {
        let mask = TokenMask::from_bits(vec![0b101, 1]);
        let mut logits = [1.0; 70];
        mask.apply(&mut logits);
        let left: Vec<usize> = (0..70).filter(|&id| logits[id] > f32::NEG_INFINITY).collect();
        assert_eq!(left, [0, 2, 32]);
        assert!(!mask.is_empty() && TokenMask::from_bits(vec![0; 3]).is_empty());
    }

    #[test]
    fn a_remote_constraint_asks_once_a_token() {
        let mut remote = RemoteConstraint::default();
        assert_eq!(remote.permission().unwrap(), Permission::Ask(vec![]));
        remote.supply(TokenMask::from_bits(vec![2])).unwrap();
        assert_eq!(remote.permission().unwrap(), Permission::Tokens(TokenMask::from_bits(vec![2])));
        remote.accept(1).unwrap();
        assert_eq!(remote.permission().unwrap(), Permission::Ask(vec![1]));
        remote.supply(TokenMask::default()).unwrap();
        assert_eq!(remote.permission().unwrap(), Permission::End);
    }
}
