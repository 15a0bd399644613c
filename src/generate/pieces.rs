//! Where the text of tokens comes from, as the step machine sees it. A model without a tokenizer has none.

use crate::backend::MaybeSend;
use crate::error::Result;

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
