//! Guesses the next tokens by looking up what followed the last ones before (prompt lookup decoding). Knows no model:
//! whoever runs a draft says how much of it was right.

/// Tokens at the end that are looked up: the longest that were there before count.
const MOST_MATCHED: usize = 4;
/// Fewer tokens at the end say too little of what follows.
const LEAST_MATCHED: usize = 2;
/// Tokens of the first draft.
const FIRST_LENGTH: usize = 3;
/// The most drafts without a right token that are counted: after as many, one in sixteen tokens is tried.
const MOST_MISSES: u32 = 4;

/// Makes drafts for one generation.
#[derive(Debug, Clone)]
pub struct Drafter {
    most: usize,
    /// Tokens of the next draft at most.
    length: usize,
    /// Drafts in a row without a right token.
    misses: u32,
    /// Drafts not to be made.
    pause: u32,
    drafted: usize,
    accepted: usize,
}

impl Drafter {
    /// Drafts of at most `most` tokens.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, length: FIRST_LENGTH.min(most), misses: 0, pause: 0, drafted: 0, accepted: 0 }
    }

    /// What may follow `sequence`, at most `room` tokens; empty when there is nothing to go by, or much was wrong.
    #[must_use]
    pub fn draft(&mut self, sequence: &[u32], room: usize) -> Vec<u32> {
        let mut draft = Vec::new();
        if self.pause > 0 {
            self.pause -= 1;
            return draft;
        }
        let Some(start) = follower(sequence) else { return draft };
        // What follows may run into the draft itself, as in a text that only repeats.
        let mut all = sequence.get(start..).unwrap_or_default().to_vec();
        for index in 0..self.length.min(room) {
            let Some(&token) = all.get(index) else { break };
            draft.push(token);
            all.push(token);
        }
        draft
    }

    /// Notes that of a draft of `drafted` tokens the first `accepted` were right. Drafts grow while they are right, get
    /// shorter when not, and rarer when nothing of them is.
    pub fn learn(&mut self, drafted: usize, accepted: usize) {
        self.drafted += drafted;
        self.accepted += accepted;
        // One less than a power of two: with the token before it, a draft is run as whole groups of rows.
        let next = if accepted == drafted { self.length * 2 + 1 } else { self.length / 2 };
        self.length = next.clamp(1, self.most);
        self.misses = if accepted > 0 { 0 } else { (self.misses + 1).min(MOST_MISSES) };
        self.pause = (1 << self.misses) - 1;
    }

    /// Tokens drafted and accepted so far.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.drafted, self.accepted)
    }
}

/// Where what followed an earlier occurrence of the last tokens begins: of the longest occurrence the latest.
fn follower(sequence: &[u32]) -> Option<usize> {
    let mut best = (LEAST_MATCHED - 1, None);
    for end in (1..sequence.len()).rev() {
        let earlier = sequence.get(..end).unwrap_or_default().iter().rev();
        let matched = earlier.zip(sequence.iter().rev()).take(MOST_MATCHED).take_while(|(a, b)| a == b).count();
        if matched > best.0 {
            best = (matched, Some(end));
            if matched == MOST_MATCHED {
                break;
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_the_longest_match_is_drafted() {
        let mut drafter = Drafter::new(8);
        // `2 3` was followed by 4, and later, after a longer match, by 7.
        assert_eq!(drafter.draft(&[1, 2, 3, 4, 9, 8, 2, 3, 7, 5, 6, 8, 2, 3], 8), [7, 5, 6]);
        assert_eq!(drafter.draft(&[1, 2, 3, 4, 5, 9, 2, 3], 8), [4, 5, 9]);
        assert_eq!(drafter.draft(&[1, 2, 3, 4, 5, 9, 2, 3], 2), [4, 5]);
        assert_eq!(drafter.draft(&[1, 2, 3, 4], 8), [0; 0]);
        assert_eq!(drafter.draft(&[1, 2, 1], 8), [0; 0], "one token is not enough");
        assert_eq!(drafter.draft(&[], 8), [0; 0]);
        assert_eq!(drafter.draft(&[1, 2, 1, 2], 0), [0; 0]);
    }

    #[test]
    fn a_text_that_only_repeats_is_drafted_beyond_its_end() {
        let mut drafter = Drafter::new(8);
        drafter.learn(3, 3);
        assert_eq!(drafter.draft(&[1, 2, 1, 2], 8), [1, 2, 1, 2, 1, 2, 1]);
        assert_eq!(drafter.draft(&[5, 5, 5], 3), [5, 5, 5]);
    }

    #[test]
    fn drafts_grow_while_they_are_right_and_shrink_when_not() {
        let mut drafter = Drafter::new(16);
        let lengths: Vec<usize> = [(3, 3), (7, 7), (15, 15), (16, 16), (16, 5), (8, 0)]
            .into_iter()
            .map(|(drafted, accepted)| {
                drafter.learn(drafted, accepted);
                drafter.length
            })
            .collect();
        assert_eq!(lengths, [7, 15, 16, 16, 8, 4]);
        assert_eq!(drafter.counts(), (65, 46));
        assert_eq!(Drafter::new(2).draft(&[1, 2, 3, 4, 1, 2], 9), [3, 4]);
    }

    #[test]
    fn drafts_that_are_always_wrong_become_rare() {
        let mut drafter = Drafter::new(16);
        let tried = |drafter: &mut Drafter, times: usize| {
            let mut drafts = 0;
            for _ in 0..times {
                let draft = drafter.draft(&[1, 2, 3, 1, 2], 9);
                if !draft.is_empty() {
                    drafts += 1;
                    drafter.learn(draft.len(), 0);
                }
            }
            drafts
        };
        assert_eq!(tried(&mut drafter, 1 + 2 + 4 + 8 + 16), 5);
        assert_eq!(tried(&mut drafter, 160), 10);
        drafter.learn(1, 1);
        assert_eq!(tried(&mut drafter, 1), 1);
    }
}
