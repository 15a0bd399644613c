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
    /// Runs the next part. Answers the tokens run so far, those in all, and when an input is done the bits of its vector.
    ///
    /// # Errors
    /// The device failed.
    pub async fn next(&self) -> JsResult<Vec<u32>> {
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
        let counts = [embedding.done_tokens(), embedding.total_tokens()];
        self.embedding.put(embedding);
        let counts = counts.into_iter().map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Ok(counts.chain(vector?.into_iter().flatten().map(f32::to_bits)).collect())
    }
}
