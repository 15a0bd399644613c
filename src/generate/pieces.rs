//! Where the text of tokens comes from, as the step machine sees it. A model without a tokenizer has none.

use std::sync::Arc;

use crate::backend::MaybeSend;
use crate::error::Result;
use crate::text::{Detokenizer, Start, Tokenizer};

/// Turns ids into text, one by one.
pub trait Pieces: MaybeSend {
    /// Text that is certain after `id`, in whole characters; may be empty.
    ///
    /// # Errors
    /// What the tokenizer reports; the generation ends with it.
    fn push(&mut self, id: u32) -> Result<String>;

    /// The rest, when no id follows.
    fn finish(&mut self) -> String;

    /// The bytes of one token by itself.
    fn bytes(&self, id: u32) -> Vec<u8>;
}

/// The text of a model without a tokenizer: none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoText;

impl Pieces for NoText {
    fn push(&mut self, _id: u32) -> Result<String> {
        Ok(String::new())
    }

    fn finish(&mut self) -> String {
        String::new()
    }

    fn bytes(&self, _id: u32) -> Vec<u8> {
        Vec::new()
    }
}

/// The text of a model with a tokenizer. Ids that pad the model's vocabulary beyond the tokenizer's have none.
pub struct TextPieces {
    tokenizer: Arc<Tokenizer>,
    detokenizer: Option<Detokenizer<Arc<Tokenizer>>>,
}

impl TextPieces {
    /// The text that continues a prompt, without control tokens but those `spelled`.
    #[must_use]
    pub fn new(tokenizer: Arc<Tokenizer>, spelled: Vec<u32>) -> Self {
        let detokenizer = Some(Detokenizer::new(Arc::clone(&tokenizer), Start::Continuation).spell(spelled));
        Self { tokenizer, detokenizer }
    }
}

impl Pieces for TextPieces {
    fn push(&mut self, id: u32) -> Result<String> {
        let mut piece = String::new();
        if let Some(detokenizer) = self.detokenizer.as_mut().filter(|_| (id as usize) < self.tokenizer.vocab_size()) {
            detokenizer.push_into(id, &mut piece)?;
        }
        Ok(piece)
    }

    fn finish(&mut self) -> String {
        self.detokenizer.take().map(Detokenizer::finish).unwrap_or_default()
    }

    fn bytes(&self, id: u32) -> Vec<u8> {
        self.tokenizer.token_bytes(id).unwrap_or_default()
    }
}
