//! Guesses the next tokens by looking up what followed the last ones before (prompt lookup decoding). Knows no model:
//! whoever runs a draft says how much of it was right.

/// Fewer tokens at the end say too little of what follows. A wrong draft costs the time of some tokens, and texts that
/// share two or three tokens with what was said before mostly go on in another way.
const LEAST_MATCHED: usize = 6;
/// The most tokens at the end that are looked up: the longest that were there before count.
const MOST_MATCHED: usize = 12;
/// Tokens of a draft after one that was wrong. One less than a power of two: with the token before it, a draft is run
/// as whole groups of rows, which cost the same however many of them are filled.
const FIRST_LENGTH: usize = 7;
/// Of a draft so much has to be right, or more tokens have to match before the next: one in this many.
const LEAST_RIGHT: usize = 4;

/// Makes drafts for one generation.
#[derive(Debug, Clone)]
pub struct Drafter {
    most: usize,
    /// Tokens of the next draft at most.
    length: usize,
    /// Tokens that have to match before the next draft.
    needed: usize,
    drafted: usize,
    accepted: usize,
}

impl Drafter {
    /// Drafts of at most `most` tokens.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, length: FIRST_LENGTH.min(most), needed: LEAST_MATCHED, drafted: 0, accepted: 0 }
    }

    /// What may follow `sequence`, at most `room` tokens; empty when there is too little to go by.
    #[must_use]
    pub fn draft(&self, sequence: &[u32], room: usize) -> Vec<u32> {
        let mut draft = Vec::new();
        let Some(start) = follower(sequence, self.needed) else { return draft };
        // What follows may run into the draft itself, as in a text that only repeats.
        let mut all = sequence.get(start..).unwrap_or_default().to_vec();
        for index in 0..self.length.min(room) {
            let Some(&token) = all.get(index) else { break };
            draft.push(token);
            all.push(token);
        }
        draft
    }

    /// Notes that of a draft of `drafted` tokens the first `accepted` were right. Drafts grow while they are right;
    /// where little of one was, twice as many tokens have to match before the next.
    pub fn learn(&mut self, drafted: usize, accepted: usize) {
        self.drafted += drafted;
        self.accepted += accepted;
        let next = if accepted == drafted { self.length * 2 + 1 } else { FIRST_LENGTH };
        self.length = next.min(self.most);
        self.needed =
            if accepted * LEAST_RIGHT >= drafted { LEAST_MATCHED } else { (self.needed * 2).min(MOST_MATCHED) };
    }

    /// Tokens drafted and accepted so far.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.drafted, self.accepted)
    }
}

/// Where what followed an earlier occurrence of the last tokens, `needed` at least, begins: of the longest occurrence
/// the latest.
fn follower(sequence: &[u32], needed: usize) -> Option<usize> {
    let mut best = (needed - 1, None);
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

    /// Tokens that differ, and then the first `n` of them again.
    fn again(n: u32) -> Vec<u32> {
        (1..=30).chain(1..=n).collect()
    }

    #[test]
    fn what_followed_the_longest_match_is_drafted() {
        let drafter = Drafter::new(8);
        assert_eq!(drafter.draft(&again(6), 8), [7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(drafter.draft(&again(6), 2), [7, 8]);
        assert_eq!(drafter.draft(&again(5), 8), [0; 0], "five tokens are not enough");
        assert_eq!(drafter.draft(&[], 8), [0; 0]);
        assert_eq!(drafter.draft(&again(6), 0), [0; 0]);
        // The last six tokens were followed by 99 later, the last eight by 9 earlier.
        let longest = [&again(0)[..], &[50, 3, 4, 5, 6, 7, 8, 99, 60, 61, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
        assert_eq!(drafter.draft(&longest, 3), [9, 10, 11]);
        assert_eq!(Drafter::new(2).draft(&again(6), 9), [7, 8]);
    }

    #[test]
    fn a_text_that_only_repeats_is_drafted_beyond_its_end() {
        let mut drafter = Drafter::new(32);
        assert_eq!(drafter.draft(&[1, 2, 1, 2, 1, 2, 1, 2], 8), [1, 2, 1, 2, 1, 2, 1]);
        drafter.learn(7, 7);
        assert_eq!(drafter.draft(&[5; 7], 32), [5; 15]);
    }

    #[test]
    fn drafts_grow_while_they_are_right_and_begin_anew_when_not() {
        let mut drafter = Drafter::new(16);
        let lengths: Vec<usize> = [(7, 7), (15, 15), (16, 16), (16, 5), (7, 7), (15, 0)]
            .into_iter()
            .map(|(drafted, accepted)| {
                drafter.learn(drafted, accepted);
                drafter.length
            })
            .collect();
        assert_eq!(lengths, [15, 16, 16, 7, 15, 7]);
        assert_eq!(drafter.counts(), (76, 50));
    }

    #[test]
    fn after_a_wrong_draft_more_has_to_match() {
        let mut drafter = Drafter::new(16);
        drafter.learn(7, 1);
        assert_eq!(drafter.draft(&again(11), 3), [0; 0]);
        assert_eq!(drafter.draft(&again(12), 3), [13, 14, 15]);
        drafter.learn(7, 0);
        assert_eq!(drafter.draft(&again(12), 3), [13, 14, 15], "no more than that");
        drafter.learn(7, 2);
        assert_eq!(drafter.draft(&again(6), 3), [7, 8, 9], "a right one makes up for it");
    }
}
