//! The text side of a loaded model: its tokenizer and its chat template, either of which a file may lack.

use super::chat::spelled;
use super::vocabulary;
use crate::error::{Error, Result};
use crate::format::ModelFile;
use crate::generate::TokenVocabulary;
use crate::text::{ChatTemplate, Tokenizer};
use std::sync::Arc;

/// Metadata key of the chat template.
const TEMPLATE: &str = "tokenizer.chat_template";

/// Tokenizer and template of a file.
pub struct Text {
    tokenizer: Option<Arc<Tokenizer>>,
    template: Option<ChatTemplate>,
}

impl Text {
    /// Takes the vocabulary out of the file's metadata (it is large) and compiles the template:
    /// the user's, else the file's.
    pub fn read(file: &mut ModelFile, template: Option<&str>) -> Result<Self> {
        let vocabulary = vocabulary::take(&mut file.metadata)?;
        let tokenizer = vocabulary.map(Tokenizer::from_vocabulary).transpose()?.map(Arc::new);
        let source = match template {
            Some(source) => Some(source),
            None => file.metadata.get::<&str>(TEMPLATE)?,
        };
        Ok(Self { tokenizer, template: source.map(ChatTemplate::new).transpose()? })
    }

    /// The tokenizer; fails where the file has none.
    pub fn tokenizer(&self) -> Result<&Arc<Tokenizer>> {
        self.tokenizer
            .as_ref()
            .ok_or_else(|| Error::unsupported("this file has no tokenizer: it takes token ids, not text"))
    }

    /// Fails when there are tokens that the model has no embedding for.
    pub fn check_rows(&self, n_rows: usize) -> Result<()> {
        let n_tokens = self.tokenizer.as_ref().map_or(0, |tokenizer| tokenizer.vocab_size());
        if n_tokens > n_rows {
            let message = format!("expected an embedding for each of {n_tokens} tokens, found {n_rows}");
            return Err(Error::malformed(message));
        }
        Ok(())
    }

    /// Whether the file has a tokenizer.
    pub fn has_tokenizer(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// The vocabulary as grammars see it, for a model with `n_rows` logits. Markers of calls and thoughts that are control
    /// tokens have their spelling, so that a grammar of text has them too.
    pub fn grammar_vocabulary(&self, n_rows: usize) -> Result<TokenVocabulary> {
        let tokenizer = self.tokenizer()?;
        let spelled = self.template.as_ref().map(|template| spelled(tokenizer, template, true)).unwrap_or_default();
        let bytes = |id: u32| match tokenizer.token(id) {
            Some(spelling) if spelled.contains(&id) => spelling.as_bytes().to_vec(),
            _ => tokenizer.token_bytes(id).unwrap_or_default(),
        };
        let tokens = (0..n_rows as u32).map(bytes).collect();
        Ok(TokenVocabulary { tokens, end_ids: tokenizer.end_of_turn_ids().to_vec() })
    }

    /// The template; fails naming the alternatives where there is none.
    pub fn template(&self) -> Result<&ChatTemplate> {
        self.template.as_ref().ok_or_else(|| {
            Error::template("this file has no chat template: use `complete` for raw text, or give a `chatTemplate`")
        })
    }
}
