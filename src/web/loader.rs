//! The loader for JS: says what it needs as JSON and is given bytes.

use super::engine::Engine;
use super::error::JsResult;
use super::options::{LoaderOptions, parse};
use super::slot::Slot;
use super::clock;
use crate::engine::{self, Need};
use crate::error::Error;
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

/// A model under way. See `Loader` in `js/hanzo-edge.d.ts`.
#[wasm_bindgen]
pub struct Loader(Slot<engine::Loader>);

#[wasm_bindgen]
impl Loader {
    /// Starts a load; `options` is JSON.
    ///
    /// # Errors
    /// An option is out of its range.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str) -> JsResult<Self> {
        let input = parse::<LoaderOptions>(options)?.into_input()?;
        let loader = engine::Loader::new(input.config, input.lengths, input.rejected, clock())?;
        Ok(Self(Slot::new(loader)))
    }

    /// What is needed next, as JSON.
    ///
    /// # Errors
    /// Another call is running.
    pub fn need(&self) -> JsResult<String> {
        let need = self.0.with(|loader| loader.need())?;
        let value = match need {
            Need::Prefix { shard, bytes } => json!({ "need": "prefix", "shard": shard, "bytes": bytes }),
            Need::Range { shard, range } => {
                json!({ "need": "range", "shard": shard, "start": range.start, "end": range.end })
            }
            Need::Open => json!({ "need": "open" }),
            Need::Finish => json!({ "need": "finish" }),
        };
        Ok(value.to_string())
    }

    /// Gives the bytes that were asked for.
    ///
    /// # Errors
    /// They are not what a model file holds there.
    pub fn supply(&self, bytes: &[u8]) -> JsResult<()> {
        Ok(self.0.with(|loader| loader.supply(bytes))??)
    }

    /// Opens a device and plans the model on it.
    ///
    /// # Errors
    /// The model is of an unknown kind, or no backend takes it.
    pub async fn open(&self) -> JsResult<()> {
        let mut loader = self.0.take()?;
        let result = loader.open().await;
        self.0.put(loader);
        Ok(result?)
    }

    /// Compiles and tests the kernels; `undefined` means that the next backend was chosen instead.
    ///
    /// # Errors
    /// The last backend failed too.
    pub async fn finish(&self) -> JsResult<Option<Engine>> {
        let mut loader = self.0.take()?;
        let result = loader.finish().await;
        self.0.put(loader);
        Ok(result?.map(Engine::new))
    }
}

impl From<serde_json::Error> for super::error::JsError {
    fn from(error: serde_json::Error) -> Self {
        Error::internal(format!("a value is no JSON: {error}")).into()
    }
}
