//! The loader for JS: says what it needs as JSON and is given bytes.

use super::engine::Engine;
use super::error::JsResult;
use super::options::{LoaderOptions, parse};
use super::slot::Slot;
use super::{clock, name_for_js};
use crate::backend::Machine;
use crate::engine::{self, Need, Outlook};
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

    /// What the model would take on a machine, given and answered as JSON.
    ///
    /// # Errors
    /// A header is missing, or the model is of an unknown kind.
    pub fn plan(&self, machine: &str) -> JsResult<String> {
        let machine: Machine = parse(machine)?;
        let outlook = self.0.with(|loader| loader.outlook(&machine))??;
        let Outlook { rejected, memory, fault, .. } = &outlook;
        let rejected: Vec<_> =
            rejected.iter().map(|row| json!({ "backend": name_for_js(&row.backend), "reason": row.reason })).collect();
        let value = json!({
            "backend": name_for_js(outlook.backend),
            "rejected": rejected,
            "quantization": outlook.quantization,
            "contextTokens": outlook.context_tokens,
            "memory": { "weights": memory.weights_bytes, "kv": memory.kv_bytes, "scratch": memory.scratch_bytes, "total": memory.total() },
            "fault": fault.as_ref().map(|fault| json!({ "code": fault.code(), "message": fault.message() })),
            "fileBytes": outlook.file_bytes,
        });
        Ok(value.to_string())
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
