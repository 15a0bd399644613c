//! Which tokens a model's key/value cache holds, so that a prompt that begins like the last one is not run again.
//! Holds ids only; the keys and values are the backend's.

/// The tokens whose keys and values are in the cache, by position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenCache {
    tokens: Vec<u32>,
    /// Counts claims: whoever holds the latest one may count on the cache being as it left it.
    claim: u64,
}

impl TokenCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tokens held, by position.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// How many tokens at the start of `prompt` need not be run: those that the cache holds at the same places, but
    /// never the last one of the prompt, whose logits are needed.
    #[must_use]
    pub fn reuse(&self, prompt: &[u32]) -> usize {
        let same = self.tokens.iter().zip(prompt).take_while(|(held, wanted)| held == wanted).count();
        same.min(prompt.len().saturating_sub(1))
    }

    /// Notes tokens that were run at the positions that follow. Done after the run: one that fails or is dropped
    /// half-way leaves nothing here that the device may not hold.
    pub fn extend(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Forgets everything; whoever used the cache has to claim it again.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.claim += 1;
    }

    /// Makes the cache the caller's until somebody else claims or clears it, and keeps what `sequence` can reuse.
    /// Answers the claim and how many tokens of `sequence` need not be run.
    pub(crate) fn claim(&mut self, sequence: &[u32]) -> (u64, usize) {
        let reused = self.reuse(sequence);
        self.tokens.truncate(reused);
        self.claim += 1;
        (self.claim, reused)
    }

    /// Whether `claim` is the latest.
    pub(crate) fn is_claimed_by(&self, claim: u64) -> bool {
        self.claim == claim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_start_is_reused_but_never_the_whole_prompt() {
        let mut cache = TokenCache::new();
        cache.extend(&[1, 2, 3, 4]);
        assert_eq!(cache.reuse(&[1, 2, 9]), 2);
        assert_eq!(cache.reuse(&[1, 2, 3, 4, 5]), 4);
        assert_eq!(cache.reuse(&[1, 2, 3, 4]), 3);
        assert_eq!(cache.reuse(&[1, 2]), 1);
        assert_eq!(cache.reuse(&[9]), 0);
        assert_eq!(cache.reuse(&[]), 0);
        let (claim, reused) = cache.claim(&[1, 7]);
        assert_eq!((cache.tokens(), reused), ([1].as_slice(), 1));
        assert!(cache.is_claimed_by(claim));
        cache.clear();
        assert!(!cache.is_claimed_by(claim) && cache.tokens().is_empty());
    }
}
