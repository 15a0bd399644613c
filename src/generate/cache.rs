//! Which tokens the key/value cache holds, and which beginnings of earlier sequences the backend keeps copies of, so
//! that a prompt that begins like an earlier one is not run again. Holds ids only; keys and values are the backend's.

use crate::backend::Executable;
use crate::error::{ErrorKind, Result};

/// Tokens that must be at stake before a sequence is copied away: fewer are run again as fast as they are copied.
const LEAST_TOKENS: usize = 8;

/// The tokens whose keys and values are in the cache, by position, and the copies of those that were there before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenCache {
    tokens: Vec<u32>,
    /// Counts claims: whoever holds the latest one may count on the cache being as it left it.
    claim: u64,
    /// The longest unused comes first.
    snapshots: Vec<Snapshot>,
    /// Bytes that all copies may take.
    budget: u64,
}

/// A copy that the backend keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snapshot {
    place: usize,
    tokens: Vec<u32>,
    bytes: u64,
}

/// What a claim got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its number.
    pub number: u64,
    /// Tokens of the sequence that need not be run.
    pub reused: usize,
}

impl TokenCache {
    /// An empty cache without copies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty cache whose copies take at most `budget` bytes; 0 makes none.
    #[must_use]
    pub fn with_budget(budget: u64) -> Self {
        Self { budget, ..Self::default() }
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
        reusable(&self.tokens, prompt)
    }

    /// Notes tokens that were run at the positions that follow. Done after the run: one that fails or is dropped
    /// half-way leaves nothing here that the device may not hold.
    pub fn extend(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Forgets what the cache holds, not the copies; whoever used the cache has to claim it again.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.claim += 1;
    }

    /// Makes the cache the caller's until somebody else claims or clears it, with as much of `sequence` in it as it or
    /// any copy holds. What would be lost by that is copied away first.
    ///
    /// # Errors
    /// What the backend reports; the cache holds nothing then.
    pub(crate) async fn claim(&mut self, executable: &mut dyn Executable, sequence: &[u32]) -> Result<Claim> {
        self.claim += 1;
        let held = self.reuse(sequence);
        let best = (0..self.snapshots.len()).max_by_key(|&index| self.reusable_of(index, sequence));
        let best = best.filter(|&index| self.reusable_of(index, sequence) > held);
        // Used last, so that it is the last to go.
        if let Some(index) = best {
            self.snapshots[index..].rotate_left(1);
        }
        let mut tokens = std::mem::take(&mut self.tokens);
        self.keep(executable, &tokens, held, usize::from(best.is_some())).await?;
        tokens.truncate(held);
        if let Some(saved) = self.snapshots.last().filter(|_| best.is_some()) {
            let reused = reusable(&saved.tokens, sequence);
            executable.restore(saved.place, reused).await?;
            tokens = sequence.iter().take(reused).copied().collect();
        }
        // Not before all that waits is over: whoever drops this half-way leaves an empty cache.
        self.tokens = tokens;
        Ok(Claim { number: self.claim, reused: self.tokens.len() })
    }

    /// Whether the claim with this number is the latest.
    pub(crate) fn is_claimed_by(&self, number: u64) -> bool {
        self.claim == number
    }

    fn reusable_of(&self, index: usize, sequence: &[u32]) -> usize {
        self.snapshots.get(index).map_or(0, |snapshot| reusable(&snapshot.tokens, sequence))
    }

    /// Copies `tokens`, which the device holds, unless few of them beyond the first `held` are at stake. The last
    /// `needed` copies stay.
    async fn keep(
        &mut self,
        executable: &mut dyn Executable,
        tokens: &[u32],
        held: usize,
        needed: usize,
    ) -> Result<()> {
        if self.budget == 0 || tokens.len() < held + LEAST_TOKENS {
            return Ok(());
        }
        let usable = self.snapshots.len() - needed;
        let covers = |saved: &Snapshot| tokens.len() < common(&saved.tokens, tokens) + LEAST_TOKENS;
        if let Some(index) = self.snapshots.iter().position(covers) {
            if index < usable {
                self.snapshots[index..usable].rotate_left(1);
            }
            return Ok(());
        }
        let bytes = executable.snapshot_bytes(tokens.len());
        if bytes == 0 || !self.make_room(executable, tokens, bytes, needed) {
            return Ok(());
        }
        let place = (0..).find(|place| self.snapshots.iter().all(|saved| saved.place != *place)).unwrap_or_default();
        match executable.save(place, tokens.len()).await {
            Ok(()) => {
                let at = self.snapshots.len() - needed;
                self.snapshots.insert(at, Snapshot { place, tokens: tokens.to_vec(), bytes });
                Ok(())
            }
            // A copy is a convenience: without room for it the tokens are run again one day.
            Err(error) if matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Limits) => {
                executable.discard(place);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Discards copies that one of `tokens` makes needless, and then the longest unused, until `bytes` more are within
    /// the budget; the last `needed` copies stay. Where they cannot be, discards nothing and answers false.
    fn make_room(&mut self, executable: &mut dyn Executable, tokens: &[u32], bytes: u64, needed: usize) -> bool {
        let usable = self.snapshots.len().saturating_sub(needed);
        let kept: u64 = self.snapshots.iter().skip(usable).map(|saved| saved.bytes).sum();
        if kept.saturating_add(bytes) > self.budget {
            return false;
        }
        let needless = |saved: &Snapshot| tokens.starts_with(&saved.tokens);
        while let Some(index) = self.snapshots.iter().position(needless) {
            executable.discard(self.snapshots.remove(index).place);
        }
        while self.snapshots.iter().map(|saved| saved.bytes).sum::<u64>() + bytes > self.budget {
            executable.discard(self.snapshots.remove(0).place);
        }
        true
    }
}

/// How many tokens at the start of `sequence` are those of `held`, the last one of `sequence` never among them.
fn reusable(held: &[u32], sequence: &[u32]) -> usize {
    common(held, sequence).min(sequence.len().saturating_sub(1))
}

/// How many tokens two sequences begin with alike.
fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::stub::Stub;
    use super::*;
    use futures::executor::block_on;

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
        let mut stub = Stub::saying(&[], 0);
        let claim = block_on(cache.claim(&mut stub, &[1, 7])).unwrap();
        assert_eq!((cache.tokens(), claim.reused), ([1].as_slice(), 1));
        assert!(cache.is_claimed_by(claim.number));
        cache.clear();
        assert!(!cache.is_claimed_by(claim.number) && cache.tokens().is_empty());
        assert_eq!(stub.calls, Vec::<String>::new());
    }

    /// A sequence of `len` tokens that no other `name` begins like.
    fn sequence(name: u32, len: u32) -> Vec<u32> {
        (0..len).map(|index| name + index % 3).collect()
    }

    /// Claims and runs a sequence; how much of it was there.
    fn run(cache: &mut TokenCache, stub: &mut Stub, sequence: &[u32]) -> usize {
        let reused = block_on(cache.claim(stub, sequence)).unwrap().reused;
        assert_eq!(cache.tokens(), &stub.held[..reused], "the history is what the device holds");
        assert_eq!(cache.tokens(), &sequence[..reused]);
        stub.held.truncate(reused);
        stub.held.extend_from_slice(&sequence[reused..]);
        cache.extend(&sequence[reused..]);
        reused
    }

    #[test]
    fn sequences_that_alternate_are_not_run_again() {
        let (mut cache, mut stub) = (TokenCache::with_budget(120), Stub::saying(&[], 0));
        let (mut a, mut b) = (sequence(1, 20), sequence(5, 30));
        assert_eq!([run(&mut cache, &mut stub, &a), run(&mut cache, &mut stub, &b)], [0, 0]);
        for _ in 0..3 {
            a.extend([9; LEAST_TOKENS]);
            b.extend([9; LEAST_TOKENS]);
            assert_eq!(run(&mut cache, &mut stub, &a), a.len() - LEAST_TOKENS);
            assert_eq!(run(&mut cache, &mut stub, &b), b.len() - LEAST_TOKENS);
        }
        // One copy of each at most: older beginnings of the same sequence are gone.
        assert_eq!(cache.snapshots.len(), 2);
        assert_eq!(stub.saved.len(), 2);
    }

    #[test]
    fn the_longest_unused_copy_goes_first_and_the_budget_holds() {
        // A token is a byte here.
        let (mut cache, mut stub) = (TokenCache::with_budget(50), Stub::saying(&[], 0));
        let [a, b, c, d] = [1, 4, 7, 10].map(|name| sequence(name, 20));
        for next in [&a, &b, &c] {
            run(&mut cache, &mut stub, next);
        }
        // Kept: a and b. Using a again makes b the oldest, which goes for c.
        assert_eq!(run(&mut cache, &mut stub, &a), 19);
        assert_eq!(run(&mut cache, &mut stub, &d), 0);
        assert!(stub.saved.values().map(Vec::len).sum::<usize>() <= 50);
        assert_eq!(run(&mut cache, &mut stub, &b), 0);
        let long = sequence(2, 51);
        run(&mut cache, &mut stub, &long);
        let before = cache.snapshots.clone();
        assert_eq!(run(&mut cache, &mut stub, &sequence(8, 9)), 0);
        assert_eq!(cache.snapshots, before, "what is over the budget alone displaces nothing");
    }

    #[test]
    fn without_a_budget_nothing_is_copied() {
        let (mut cache, mut stub) = (TokenCache::new(), Stub::saying(&[], 0));
        for next in [sequence(1, 20), sequence(5, 20), sequence(1, 20)] {
            assert_eq!(run(&mut cache, &mut stub, &next), 0);
        }
        assert!(stub.calls.is_empty());
    }

    #[test]
    fn a_few_tokens_are_not_worth_a_copy_and_equal_ones_no_second() {
        let (mut cache, mut stub) = (TokenCache::with_budget(500), Stub::saying(&[], 0));
        let (a, b) = (sequence(1, 20), sequence(5, 20));
        run(&mut cache, &mut stub, &a);
        run(&mut cache, &mut stub, &[&a[..15], &[9]].concat());
        assert!(stub.saved.is_empty(), "five tokens were at stake");
        run(&mut cache, &mut stub, &b);
        run(&mut cache, &mut stub, &[&a[..15], &[9]].concat());
        run(&mut cache, &mut stub, &b);
        assert_eq!(stub.calls.iter().filter(|call| call.starts_with("save")).count(), 2);
    }

    #[test]
    fn a_copy_that_fails_is_none_and_a_restore_that_fails_leaves_nothing() {
        let (mut cache, mut stub) = (TokenCache::with_budget(500), Stub::saying(&[], 0));
        let (a, b) = (sequence(1, 20), sequence(5, 20));
        run(&mut cache, &mut stub, &a);
        stub.fails_at = Some(1);
        assert_eq!(block_on(cache.claim(&mut stub, &b)).unwrap_err().code(), "device-lost");
        assert!(cache.tokens().is_empty() && cache.snapshots.is_empty());
        stub.fails_at = None;
        stub.has_room = false;
        stub.held = a.clone();
        cache.extend(&a);
        assert_eq!(run(&mut cache, &mut stub, &b), 0);
        assert!(cache.snapshots.is_empty(), "there was no room");
        stub.has_room = true;
        assert_eq!(run(&mut cache, &mut stub, &a), 0);
        stub.fails_at = Some(stub.calls.len() + 2);
        assert_eq!(block_on(cache.claim(&mut stub, &b)).unwrap_err().code(), "device-lost");
        assert!(cache.tokens().is_empty());
    }
}
