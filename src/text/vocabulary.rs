//! A vocabulary as plain data, and the checks that it is whole. Knows no file format: the engine fills it in.

use crate::error::{Error, Result};

/// What a model file says of its tokenizer.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    /// The kind: `gpt2` for byte-level, `llama` for SentencePiece-like.
    pub model: String,
    /// The name of the pre-tokenizer, for byte-level vocabularies.
    pub pre: Option<String>,
    /// The spellings, by id.
    pub tokens: Vec<String>,
    /// One score a token; needed for `llama`.
    pub scores: Option<Vec<f32>>,
    /// One class a token: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    pub types: Option<Vec<i32>>,
    /// "left right" in order of rank; needed for `gpt2`.
    pub merges: Option<Vec<String>>,
    /// Begin of text.
    pub bos: Option<u32>,
    /// End of text.
    pub eos: Option<u32>,
    /// End of turn.
    pub eot: Option<u32>,
    /// What stands for a character that cannot be spelled.
    pub unknown: Option<u32>,
    /// Filler.
    pub padding: Option<u32>,
    /// Whether text begins with `bos`; `None` takes the kind's habit.
    pub add_bos: Option<bool>,
    /// Whether text ends with `eos`; `None` is no.
    pub add_eos: Option<bool>,
    /// Whether a space goes before each piece of text; `None` takes the kind's habit.
    pub add_space_prefix: Option<bool>,
}

impl Vocabulary {
    /// Checks that every list has one entry a token and every id is a token's.
    ///
    /// # Errors
    /// `MalformedFile` naming the entry, what was expected and what was found.
    pub(crate) fn check(&self) -> Result<()> {
        let n = self.tokens.len();
        if n == 0 {
            return Err(Error::malformed("the vocabulary has no tokens"));
        }
        let lists =
            [("scores", self.scores.as_ref().map(Vec::len)), ("token types", self.types.as_ref().map(Vec::len))];
        for (name, found) in lists {
            if let Some(found) = found
                && found != n
            {
                return Err(Error::malformed(format!("expected as many {name} as tokens, {n}; found {found}")));
            }
        }
        let ids = [
            ("bos", self.bos),
            ("eos", self.eos),
            ("eot", self.eot),
            ("unknown", self.unknown),
            ("padding", self.padding),
        ];
        for (name, id) in ids {
            if let Some(id) = id
                && id as usize >= n
            {
                return Err(Error::malformed(format!(
                    "the {name} token should be one of the {n} tokens; found id {id}"
                )));
            }
        }
        Ok(())
    }
}
