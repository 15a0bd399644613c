//! The tokenizer library's pipeline with our merging model in it. Knows nothing of where a vocabulary came from.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::BpeTrainer;
use tokenizers::{Decoder, Encoding, Model, ModelWrapper, NormalizerWrapper, PostProcessor, Token, TokenizerImpl};

use crate::text::merge::Merger;
use crate::text::split::Stages;

/// Added tokens, normalizing, cutting, merging: all of the library but what we replace.
pub(crate) type Pipeline = TokenizerImpl<Shared, NormalizerWrapper, Stages, Described, Described>;

/// A decoder or post-processor of a file as it describes it. The library's own are never made: reading or running a
/// broken one panics, and its decoders cannot stream. What they mean is read by `json`.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Described(pub(crate) Value);

impl Decoder for Described {
    fn decode_chain(&self, tokens: Vec<String>) -> tokenizers::Result<Vec<String>> {
        Ok(tokens)
    }
}

impl PostProcessor for Described {
    fn added_tokens(&self, _is_pair: bool) -> usize {
        0
    }

    fn process_encodings(&self, encodings: Vec<Encoding>, _add_special: bool) -> tokenizers::Result<Vec<Encoding>> {
        Ok(encodings)
    }
}

/// A model that several pipelines share, so that each can treat added tokens its own way without a second vocabulary.
#[derive(Clone)]
pub(crate) enum Shared {
    /// Ours, for vocabularies of model files.
    Merger(Arc<Merger>),
    /// The library's, from a tokenizer.json.
    Library(Arc<ModelWrapper>),
}

impl<'de> Deserialize<'de> for Shared {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ModelWrapper::deserialize(deserializer).map(|model| Self::Library(Arc::new(model)))
    }
}

impl Model for Shared {
    type Trainer = TrainerWrapper;

    fn tokenize(&self, sequence: &str) -> tokenizers::Result<Vec<Token>> {
        match self {
            Self::Library(model) => model.tokenize(sequence),
            // Spelling and offsets are never read.
            Self::Merger(merger) => {
                Ok(merger.encode(sequence)?.into_iter().map(|id| Token::new(id, String::new(), (0, 0))).collect())
            }
        }
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        match self {
            Self::Library(model) => model.token_to_id(token),
            Self::Merger(merger) => merger.table().id(token),
        }
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        match self {
            Self::Library(model) => model.id_to_token(id),
            Self::Merger(merger) => merger.table().get(id).map(str::to_string),
        }
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        match self {
            Self::Library(model) => model.get_vocab(),
            Self::Merger(merger) => merger.table().iter().map(|(id, token)| (token.to_string(), id)).collect(),
        }
    }

    fn get_vocab_size(&self) -> usize {
        match self {
            Self::Library(model) => model.get_vocab_size(),
            Self::Merger(merger) => merger.table().len(),
        }
    }

    fn save(&self, folder: &Path, prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        match self {
            Self::Library(model) => model.save(folder, prefix),
            Self::Merger(_) => Err("a vocabulary of a model file is saved with that file".into()),
        }
    }

    fn get_trainer(&self) -> Self::Trainer {
        match self {
            Self::Library(model) => model.get_trainer(),
            Self::Merger(_) => TrainerWrapper::BpeTrainer(BpeTrainer::default()),
        }
    }
}
