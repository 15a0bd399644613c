//! Texts on their way to vectors, for JS.

use super::error::JsResult;
use super::slot::Slot;
use crate::engine::LoadedModel;
use crate::generate;
use wasm_bindgen::prelude::wasm_bindgen;

/// Texts on their way to vectors. See `Embedding` in `js/hanzo-edge.d.ts`.
#[wasm_bindgen]
pub struct Embedding {
    embedding: Slot<generate::Embedding>,
    model: Slot<LoadedModel>,
}

impl Embedding {
    pub(super) fn new(embedding: generate::Embedding, model: Slot<LoadedModel>) -> Self {
        Self { embedding: Slot::new(embedding), model }
    }
}

#[wasm_bindgen]
impl Embedding {
    /// Runs the next part; a vector when an input is done, else `undefined`.
    ///
    /// # Errors
    /// The device failed.
    pub async fn next(&self) -> JsResult<Option<Vec<f32>>> {
        let mut embedding = self.embedding.take()?;
        let mut model = match self.model.take() {
            Ok(model) => model,
            Err(error) => {
                self.embedding.put(embedding);
                return Err(error.into());
            }
        };
        let vector = model.next_vector(&mut embedding).await;
        self.model.put(model);
        self.embedding.put(embedding);
        Ok(vector?)
    }

    /// Tokens run so far, and in all.
    ///
    /// # Errors
    /// Another call is running.
    pub fn progress(&self) -> JsResult<Vec<u32>> {
        let count = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
        Ok(self.embedding.with(|embedding| vec![count(embedding.done_tokens()), count(embedding.total_tokens())])?)
    }
}
