//! Token ids that arrive one by one to text in whole characters. The cost of a token does not grow with the text.
//!
//! `Tokenizer::decode` runs through the same code, so that joined pieces and one-shot text are one thing. Knows nothing
//! of sampling or stop strings.

use std::borrow::Cow;
use std::ops::Deref;

use crate::error::{Error, Result};
use crate::text::bytes::{Assembler, Broken, char_to_byte, fallback_byte};
use crate::text::merge::SPACE;
use crate::text::tokenizer::{Class, Tokenizer};

/// Whether decoded text begins at the first id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The ids are a text of their own: the space that the vocabulary puts before each text is taken off again.
    Text,
    /// The ids continue a prompt: a leading space belongs to the answer.
    Continuation,
}

/// How a vocabulary's spellings become bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decoding {
    /// Each character of a spelling is a byte.
    ByteLevel,
    /// "▁" is a space; `joins_bytes`: byte tokens are bytes; `strip_first`: the text's leading space is none.
    Spaces { strip_first: bool, joins_bytes: bool },
    /// A space before every token but the first and those that begin with `prefix`.
    WordPiece { prefix: String, cleanup: bool },
    /// A space between any two tokens.
    Words,
    /// None of these: the name of the file's decoder. Such files (speech, CLIP) are for encoding.
    Unsupported(String),
}

impl Decoding {
    /// The bytes that `id` adds to a text that has begun; `None` when it adds nothing by its nature.
    pub(crate) fn bytes_of<'t>(&self, tokenizer: &'t Tokenizer, id: u32, keep_control: bool) -> Option<Cow<'t, [u8]>> {
        let spelling = tokenizer.token(id)?;
        match tokenizer.classes.get(id as usize)? {
            Class::Control if !keep_control => return None,
            Class::Control => return Some(Cow::Borrowed(spelling.as_bytes())),
            // Stored as text, not in the byte alphabet: an added token "Ö" is the letter, not the byte 0xD6.
            Class::Literal if *self == Self::ByteLevel => return Some(Cow::Borrowed(spelling.as_bytes())),
            _ => {}
        }
        Some(match self {
            Self::ByteLevel => {
                let bytes: Option<Vec<u8>> = spelling.chars().map(char_to_byte).collect();
                bytes.map_or(Cow::Borrowed(spelling.as_bytes()), Cow::Owned)
            }
            Self::Spaces { joins_bytes, .. } => match fallback_byte(spelling).filter(|_| *joins_bytes) {
                Some(byte) => Cow::Owned(vec![byte]),
                None if spelling.contains(SPACE) => Cow::Owned(spelling.replace(SPACE, " ").into_bytes()),
                None => Cow::Borrowed(spelling.as_bytes()),
            },
            Self::WordPiece { prefix, cleanup } => {
                let piece = match spelling.strip_prefix(prefix.as_str()) {
                    Some(rest) => rest.to_string(),
                    None => format!(" {spelling}"),
                };
                Cow::Owned(if *cleanup { clean_up(&piece) } else { piece }.into_bytes())
            }
            Self::Words => Cow::Owned(format!(" {spelling}").into_bytes()),
            Self::Unsupported(_) => return None,
        })
    }

    fn broken(&self) -> Broken {
        if matches!(self, Self::Spaces { .. }) { Broken::PerByte } else { Broken::PerSequence }
    }
}

/// The spaces that word pieces put before English punctuation, taken out.
fn clean_up(piece: &str) -> String {
    let pairs = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    pairs.iter().fold(piece.to_string(), |text, (from, to)| text.replace(from, to))
}

/// Ids to text, piece by piece. `T` is a reference to a tokenizer or an `Arc` of one.
pub struct Detokenizer<T: Deref<Target = Tokenizer>> {
    tokenizer: T,
    assembler: Assembler,
    keep_control: bool,
    /// Control tokens that are spelled out all the same.
    spelled: Vec<u32>,
    /// Nothing but skipped tokens so far, and the text begins here.
    at_start: bool,
}

impl<T: Deref<Target = Tokenizer>> Detokenizer<T> {
    /// A stream of text that leaves control tokens out.
    pub fn new(tokenizer: T, start: Start) -> Self {
        let assembler = Assembler::new(tokenizer.decoding.broken());
        Self { tokenizer, assembler, keep_control: false, spelled: Vec::new(), at_start: start == Start::Text }
    }

    /// Spells control tokens out when `keep`.
    #[must_use]
    pub fn keep_control(mut self, keep: bool) -> Self {
        self.keep_control = keep;
        self
    }

    /// Spells these control tokens out.
    #[must_use]
    pub fn spell(mut self, ids: Vec<u32>) -> Self {
        self.spelled = ids;
        self
    }

    /// Takes the next id; returns the text that is now certain, in whole characters, or `None` when there is none yet.
    ///
    /// # Errors
    /// `InvalidArgument` for an id outside the vocabulary; the stream is unchanged. `UnsupportedModel` when the
    /// vocabulary's file names a decoder that is not supported.
    pub fn push(&mut self, id: u32) -> Result<Option<String>> {
        let mut piece = String::new();
        self.push_into(id, &mut piece)?;
        Ok((!piece.is_empty()).then_some(piece))
    }

    /// As [`Detokenizer::push`], appending to `out`.
    ///
    /// # Errors
    /// As [`Detokenizer::push`].
    pub fn push_into(&mut self, id: u32, out: &mut String) -> Result<()> {
        self.tokenizer.check_id(id)?;
        if let Decoding::Unsupported(name) = &self.tokenizer.decoding {
            return Err(Error::unsupported(format!(
                "the tokenizer's decoder, {name}, is not supported: it can only encode"
            )));
        }
        let keeps = self.keep_control || self.spelled.contains(&id);
        let Some(mut bytes) = self.tokenizer.decoding.bytes_of(&self.tokenizer, id, keeps) else {
            return Ok(());
        };
        if self.at_start && !bytes.is_empty() {
            self.at_start = false;
            let strips =
                !matches!(self.tokenizer.decoding, Decoding::ByteLevel | Decoding::Spaces { strip_first: false, .. });
            if strips && bytes.first() == Some(&b' ') {
                bytes.to_mut().remove(0);
            }
        }
        self.assembler.push(&bytes, out);
        Ok(())
    }

    /// The rest of the text when no id follows: replacement characters for an unfinished character, or nothing.
    #[must_use]
    pub fn finish(mut self) -> String {
        let mut rest = String::new();
        self.finish_into(&mut rest);
        rest
    }

    pub(crate) fn finish_into(&mut self, out: &mut String) {
        self.assembler.finish(out);
    }
}

#[cfg(test)]
#[path = "detokenizer_tests.rs"]
mod tests;
