//! A vocabulary as grammars see it: the bytes of every token. It crosses to another module as one block of bytes.

use crate::error::{Error, Result};

/// The bytes that each token adds to an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenVocabulary {
    /// By id; empty for a token that adds none, which no grammar allows.
    pub tokens: Vec<Vec<u8>>,
    /// Tokens that end an answer.
    pub end_ids: Vec<u32>,
}

impl TokenVocabulary {
    /// As one block: the number of end ids, the end ids, then each token's length and bytes; numbers are little-endian
    /// `u32`, lengths `u16`. A token of 64 KiB or more counts as one without bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut block = Vec::new();
        block.extend((self.end_ids.len() as u32).to_le_bytes());
        self.end_ids.iter().for_each(|id| block.extend(id.to_le_bytes()));
        for token in &self.tokens {
            let length = u16::try_from(token.len()).unwrap_or(0);
            block.extend(length.to_le_bytes());
            block.extend(token.get(..usize::from(length)).unwrap_or_default());
        }
        block
    }

    /// The vocabulary in a block.
    ///
    /// # Errors
    /// `internal` when it is none.
    pub fn from_bytes(mut block: &[u8]) -> Result<Self> {
        let mut vocabulary = Self::default();
        for _ in 0..u32::from_le_bytes(take(&mut block)?) {
            vocabulary.end_ids.push(u32::from_le_bytes(take(&mut block)?));
        }
        while !block.is_empty() {
            let length = usize::from(u16::from_le_bytes(take(&mut block)?));
            let (token, rest) = block.split_at_checked(length).ok_or_else(cut)?;
            vocabulary.tokens.push(token.to_vec());
            block = rest;
        }
        Ok(vocabulary)
    }
}

fn take<const N: usize>(block: &mut &[u8]) -> Result<[u8; N]> {
    let (number, rest) = block.split_first_chunk::<N>().ok_or_else(cut)?;
    *block = rest;
    Ok(*number)
}

fn cut() -> Error {
    Error::internal("expected the bytes of a vocabulary, found fewer")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_vocabulary_survives_the_block_and_cut_ones_are_errors() {
        let tokens = vec![b"a".to_vec(), Vec::new(), vec![0xff; 300]];
        let vocabulary = TokenVocabulary { tokens, end_ids: vec![1, 70_000] };
        let block = vocabulary.to_bytes();
        assert_eq!(TokenVocabulary::from_bytes(&block).unwrap(), vocabulary);
        for length in [0, 3, 4, 11, 13, 20, block.len() - 1] {
            assert_eq!(TokenVocabulary::from_bytes(&block[..length]).unwrap_err().code(), "internal", "{length}");
        }
    }
}
