//! Text to token ids and back, for vocabularies of model files and for tokenizer.json. Knows no file format and no
//! architecture; which ids end a turn it knows from the vocabulary alone.

use std::sync::Arc;

use tokenizers::AddedToken;

use crate::error::{Error, Result};
use crate::text::bytes::fallback_byte;
use crate::text::control::ControlTokens;
use crate::text::detokenizer::{Decoding, Detokenizer, Start};
use crate::text::merge::{Merger, Rule};
use crate::text::pipeline::{Pipeline, Shared};
use crate::text::split::{Stages, pre_tokenizer_row};
use crate::text::table::TokenTable;
use crate::text::template::Rendered;
use crate::text::vocabulary::Vocabulary;

/// How spellings of control tokens inside a text are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// They become the control tokens: for text that a template or the application wrote.
    Parse,
    /// They stay ordinary text: for what a user typed.
    AsText,
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Merged from text.
    Ordinary,
    /// Spelled as it is, and found in text before merging.
    Literal,
    /// As `Literal`, but left out of decoded text and of what a user types.
    Control,
    /// One byte, in byte-fallback vocabularies.
    Byte,
}

/// Spellings that end a turn or a text wherever a vocabulary has them as control tokens.
/// Names such as `</s>` are not among them: in some vocabularies they are markup; an end of text comes by its id.
#[rustfmt::skip]
const TURN_ENDS: &[&str] = &[
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<turn|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>",
    "<EOT>", "_<EOT>", "<|EOT|>", "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "<|return|>", "<|call|>",
    "<｜end▁of▁sentence｜>", "<end_of_utterance>", "<|role_end|>",
];

/// Text to token ids and back.
pub struct Tokenizer {
    /// Control tokens are found in text.
    parse: Pipeline,
    /// The same, but they are not.
    as_text: Pipeline,
    pub(crate) table: Arc<TokenTable>,
    /// One a token.
    pub(crate) classes: Vec<Class>,
    pub(crate) decoding: Decoding,
    controls: ControlTokens,
    bos: Option<u32>,
    eos: Option<u32>,
    unknown: Option<u32>,
    padding: Option<u32>,
    turn_ends: Vec<u32>,
    /// What the file puts before and after a text.
    prefix: Vec<u32>,
    suffix: Vec<u32>,
}

/// The parts of a tokenizer before the derived ones.
pub(crate) struct Parts {
    pub(crate) parse: Pipeline,
    pub(crate) table: Arc<TokenTable>,
    pub(crate) classes: Vec<Class>,
    pub(crate) decoding: Decoding,
    pub(crate) prefix: Vec<u32>,
    pub(crate) suffix: Vec<u32>,
}

impl Tokenizer {
    /// The tokenizer of a model file's vocabulary.
    ///
    /// # Errors
    /// `MalformedFile` when the vocabulary contradicts itself, `UnsupportedModel` for a kind or pre-tokenizer that is not
    /// known; both name what was found.
    pub fn from_vocabulary(mut vocabulary: Vocabulary) -> Result<Self> {
        vocabulary.check()?;
        let classes = classes(&vocabulary);
        let table = Arc::new(TokenTable::new(&vocabulary.tokens)?);
        vocabulary.tokens = Vec::new();
        let (merger, stages, decoding, habit_bos) = match vocabulary.model.as_str() {
            "gpt2" => byte_level(&table, &mut vocabulary)?,
            "llama" => sentence_piece(&table, &mut vocabulary, &classes)?,
            other => {
                return Err(Error::unsupported(format!(
                    "the tokenizer kind {other:?} is not known; known are gpt2 and llama"
                )));
            }
        };
        let mut parse = Pipeline::new(Shared::Merger(Arc::new(merger)));
        parse.with_pre_tokenizer(stages);
        let added = classes.iter().enumerate().filter_map(|(id, class)| {
            let spelling = table.get(id as u32)?;
            let is_control = *class == Class::Control;
            (is_control || *class == Class::Literal).then(|| AddedToken::from(spelling, is_control).normalized(false))
        });
        parse
            .add_tokens(added)
            .map_err(|error| Error::malformed("the added tokens cannot be searched for").because(error))?;
        let prefix = vocabulary.bos.filter(|_| vocabulary.add_bos.unwrap_or(habit_bos)).into_iter().collect();
        let suffix = vocabulary.eos.filter(|_| vocabulary.add_eos == Some(true)).into_iter().collect();
        let mut tokenizer = Self::from_parts(Parts { parse, table, classes, decoding, prefix, suffix })?;
        tokenizer.unknown = vocabulary.unknown;
        tokenizer.padding = vocabulary.padding;
        tokenizer.set_ends(vocabulary.bos, vocabulary.eos.into_iter().chain(vocabulary.eot));
        Ok(tokenizer)
    }

    /// The tokenizer of a tokenizer.json. The file names no end of text: see [`Tokenizer::set_ends`].
    ///
    /// # Errors
    /// `MalformedFile` when it is not one, `UnsupportedModel` for a part that is not supported.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let parts = crate::text::json::read(bytes)?;
        let bos = parts.prefix.first().copied();
        let mut tokenizer = Self::from_parts(parts)?;
        tokenizer.set_ends(bos, None);
        Ok(tokenizer)
    }

    fn from_parts(parts: Parts) -> Result<Self> {
        let Parts { parse, table, classes, decoding, prefix, suffix } = parts;
        let controls = ControlTokens::new(
            classes.iter().enumerate().filter(|(_, class)| **class == Class::Control).filter_map(|(id, _)| {
                let id = id as u32;
                table.get(id).map(|spelling| (id, spelling))
            }),
        )?;
        let mut as_text = parse.clone();
        as_text.set_encode_special_tokens(true);
        let (bos, eos, unknown, padding, turn_ends) = (None, None, None, None, Vec::new());
        Ok(Self {
            parse,
            as_text,
            table,
            classes,
            decoding,
            controls,
            bos,
            eos,
            unknown,
            padding,
            turn_ends,
            prefix,
            suffix,
        })
    }

    /// Says which token begins a text and which end one; the first of `ends` is the end of text. Control tokens of the
    /// vocabulary that are known to end a turn are added by themselves. Ids outside the vocabulary are left out.
    pub fn set_ends(&mut self, bos: Option<u32>, ends: impl IntoIterator<Item = u32>) {
        let n = self.vocab_size();
        self.bos = bos.filter(|&id| (id as usize) < n);
        self.turn_ends = ends.into_iter().filter(|&id| (id as usize) < n).collect();
        self.eos = self.turn_ends.first().copied();
        let known = TURN_ENDS.iter().filter_map(|spelling| self.table.id(spelling));
        self.turn_ends.extend(known.filter(|&id| self.classes.get(id as usize) == Some(&Class::Control)));
        let mut seen = std::collections::HashSet::new();
        self.turn_ends.retain(|id| seen.insert(*id));
    }

    /// The ids of `text`, with nothing put before or after.
    ///
    /// # Errors
    /// `UnsupportedModel` when the vocabulary cannot spell a character.
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>> {
        let pipeline = if special == Special::Parse { &self.parse } else { &self.as_text };
        let encoding = pipeline.encode_fast(text, false).map_err(|error| match error.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => Error::internal("the text cannot be tokenized").because(other),
        })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The ids of a raw prompt or of a text to embed: control tokens parsed, and around it what the file asks for.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_wrapped(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = self.prefix.clone();
        ids.extend(self.encode(text, Special::Parse)?);
        ids.extend_from_slice(&self.suffix);
        Ok(ids)
    }

    /// The ids of a rendered conversation. Control tokens count only where they lie wholly in trusted text; everything
    /// else is merged exactly as the joined text would be. It begins with one begin-of-text token when the template
    /// prints it or the file asks for it, and never with two.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_rendered(&self, rendered: &Rendered) -> Result<Vec<u32>> {
        let text = rendered.text();
        let forged = rendered.untrusted_ranges();
        let mut ids =
            if forged.is_empty() { self.encode(&text, Special::Parse)? } else { self.encode_around(&text, &forged)? };
        if let Some(bos) = self.bos {
            let n_printed = ids.iter().take_while(|&&id| id == bos).count();
            if n_printed > 1 {
                ids.drain(1..n_printed);
            } else if n_printed == 0 && self.add_bos() {
                ids.insert(0, bos);
            }
        }
        Ok(ids)
    }

    /// The ids of `text`, where control tokens that touch one of the `untrusted` byte ranges (in order) are ordinary text.
    fn encode_around(&self, text: &str, untrusted: &[std::ops::Range<usize>]) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        let (mut done, mut from) = (0, 0);
        while let Some(found) = self.controls.find(text, from) {
            let next = untrusted.partition_point(|range| range.end <= found.start);
            if untrusted.get(next).is_some_and(|range| range.start < found.end) {
                from = found.start
                    + text.get(found.start..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
                continue;
            }
            ids.extend(self.encode(text.get(done..found.start).unwrap_or_default(), Special::AsText)?);
            ids.push(found.id);
            (done, from) = (found.end, found.end);
        }
        ids.extend(self.encode(text.get(done..).unwrap_or_default(), Special::AsText)?);
        Ok(ids)
    }

    /// The text of `ids`; control tokens are left out.
    ///
    /// # Errors
    /// `InvalidArgument` for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.decode_with(ids, false)
    }

    /// The text of `ids` with control tokens spelled out.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn decode_with_control(&self, ids: &[u32]) -> Result<String> {
        self.decode_with(ids, true)
    }

    fn decode_with(&self, ids: &[u32], keep_control: bool) -> Result<String> {
        let mut text = String::new();
        let mut detokenizer = Detokenizer::new(self, Start::Text).keep_control(keep_control);
        for &id in ids {
            detokenizer.push_into(id, &mut text)?;
        }
        detokenizer.finish_into(&mut text);
        Ok(text)
    }

    /// Refuses an id outside the vocabulary.
    pub(crate) fn check_id(&self, id: u32) -> Result<()> {
        let n = self.vocab_size();
        if id as usize >= n {
            return Err(Error::invalid_argument(format!(
                "a token id should be below {n}, the vocabulary's size; found {id}"
            )));
        }
        Ok(())
    }

    /// How many ids there are: one more than the highest.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.table.len()
    }

    /// The id of exactly this spelling, as the vocabulary writes it.
    #[must_use]
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.table.id(token)
    }

    /// The spelling of `id` as the vocabulary writes it; `None` outside it.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<&str> {
        self.table.get(id)
    }

    /// The bytes that `id` adds to a text; `None` for control tokens and outside the vocabulary. For grammars.
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.decoding.bytes_of(self, id, false).map(std::borrow::Cow::into_owned)
    }

    /// Whether `id` is a control token.
    #[must_use]
    pub fn is_control(&self, id: u32) -> bool {
        self.classes.get(id as usize) == Some(&Class::Control)
    }

    /// The control tokens, to be kept out of what users type: see `RenderOptions`.
    #[must_use]
    pub fn controls(&self) -> &ControlTokens {
        &self.controls
    }

    /// The token that begins a text.
    #[must_use]
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends a text.
    #[must_use]
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The token for what cannot be spelled.
    #[must_use]
    pub fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// The filler token.
    #[must_use]
    pub fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// Whether the file puts `bos` before a text.
    #[must_use]
    pub fn add_bos(&self) -> bool {
        self.bos.is_some() && self.prefix.first() == self.bos.as_ref()
    }

    /// What the file puts after a text.
    #[must_use]
    pub fn suffix(&self) -> &[u32] {
        &self.suffix
    }

    /// Every id that ends a turn or a text: the file's own and the known ones that the vocabulary has.
    #[must_use]
    pub fn end_of_turn_ids(&self) -> &[u32] {
        &self.turn_ends
    }
}

type Built = (Merger, Option<Stages>, Decoding, bool);

fn byte_level(table: &Arc<TokenTable>, vocabulary: &mut Vocabulary) -> Result<Built> {
    let row = pre_tokenizer_row(vocabulary.pre.as_deref().unwrap_or("default"))?;
    let merges = vocabulary
        .merges
        .take()
        .ok_or_else(|| Error::malformed("a gpt2 vocabulary should have merges; it has none"))?;
    let merger = Merger::ranked(table.clone(), &merges, row.ignore_merges, vocabulary.unknown)?;
    Ok((merger, Some(Stages::of_row(row)?), Decoding::ByteLevel, row.add_bos))
}

fn sentence_piece(table: &Arc<TokenTable>, vocabulary: &mut Vocabulary, classes: &[Class]) -> Result<Built> {
    let scores = vocabulary
        .scores
        .take()
        .ok_or_else(|| Error::malformed("a llama vocabulary should have scores; it has none"))?;
    let is_normal = match &vocabulary.types {
        Some(types) => types.iter().map(|kind| *kind == 1).collect(),
        None => classes.iter().map(|class| *class == Class::Ordinary).collect(),
    };
    let add_space_prefix = vocabulary.add_space_prefix.unwrap_or(true);
    let rule = Rule::Scores { scores, is_normal, add_space_prefix };
    let merger = Merger::scored(table.clone(), rule, vocabulary.unknown);
    Ok((merger, None, Decoding::Spaces { strip_first: add_space_prefix, joins_bytes: true }, true))
}

/// What each token of a model file's vocabulary is for.
fn classes(vocabulary: &Vocabulary) -> Vec<Class> {
    let ends = [vocabulary.bos, vocabulary.eos, vocabulary.eot];
    let class = |(id, spelling): (usize, &String)| {
        let kind = vocabulary.types.as_ref().and_then(|types| types.get(id)).copied();
        let is_byte =
            kind == Some(6) || (kind.is_none() && vocabulary.model == "llama" && fallback_byte(spelling).is_some());
        let ends_turn = kind != Some(1) && TURN_ENDS.contains(&spelling.as_str());
        // Some files mark their ends of turn as ordinary text: then they would be shown, and typed by users.
        if kind == Some(3) || kind == Some(2) || ends_turn || ends.contains(&Some(id as u32)) {
            Class::Control
        } else if kind == Some(4) {
            Class::Literal
        } else if is_byte {
            Class::Byte
        } else {
            Class::Ordinary
        }
    };
    vocabulary.tokens.iter().enumerate().map(class).collect()
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
mod tests;
