//! A loaded model and its generations for JS.

use super::embedding::Embedding;
use super::error::JsResult;
use super::name_for_js;
use super::options::{EmbedRequest, GenerateRequest, parse};
use super::slot::Slot;
use crate::engine::{ChatOptions, LoadedModel, Started};
use crate::error::Error;
use crate::generate::{self, AbortFlag, Event, GenerateResult, TokenMask};
use serde_json::{Map, Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// A loaded model. See `Engine` in `js/hanzo-edge.d.ts`.
#[wasm_bindgen]
pub struct Engine(Slot<LoadedModel>);

impl Engine {
    pub(super) fn new(model: LoadedModel) -> Self {
        Self(Slot::new(model))
    }
}

#[wasm_bindgen]
impl Engine {
    /// Ids of a text.
    ///
    /// # Errors
    /// The file has no tokenizer.
    pub fn tokenize(&self, text: &str) -> JsResult<Vec<u32>> {
        Ok(self.0.with(|model| model.tokenize(text))??)
    }

    /// Text of ids.
    ///
    /// # Errors
    /// The file has no tokenizer, or an id is outside the vocabulary.
    pub fn detokenize(&self, ids: &[u32]) -> JsResult<String> {
        Ok(self.0.with(|model| model.detokenize(ids))??)
    }

    /// Tokens of a conversation, given as JSON, with its template.
    ///
    /// # Errors
    /// The template is missing or refuses it.
    #[wasm_bindgen(js_name = countTokens)]
    pub fn count_tokens(&self, messages: &str) -> JsResult<u32> {
        let messages: Vec<Value> = parse(messages)?;
        let ids = self.0.with(|model| model.chat_prompt(&messages, &ChatOptions::default()))??;
        Ok(u32::try_from(ids.len()).unwrap_or(u32::MAX))
    }

    /// Starts to generate; `request` is JSON. Nothing is computed before the first `next`.
    ///
    /// # Errors
    /// An option is out of range, or the prompt does not fit.
    pub fn start(&self, request: &str) -> JsResult<Generation> {
        let request: GenerateRequest = parse(request)?;
        let options = request.sampling()?;
        let Started { generation, grammar } = self.0.with(|model| match request {
            GenerateRequest::Chat { messages, chat, .. } => {
                model.start_chat(&messages, &ChatOptions { generate: options, ..chat.into() })
            }
            GenerateRequest::Complete { prompt, .. } => model.start(model.complete_prompt(&prompt)?, &options),
        })??;
        let abort = generation.abort_flag();
        let grammar = grammar.map(|(grammar, option)| json!({ "grammar": grammar, "option": option }).to_string());
        Ok(Generation { abort, generation: Slot::new(generation), model: self.0.clone(), grammar })
    }

    /// Starts to embed; `request` is JSON. Nothing is computed before the first `next`.
    ///
    /// # Errors
    /// An option is out of range, or an input is empty or does not fit.
    pub fn embed(&self, request: &str) -> JsResult<Embedding> {
        let (inputs, options) = parse::<EmbedRequest>(request)?.into_parts()?;
        let embedding = self.0.with(|model| model.start_embedding(&inputs, &options))??;
        Ok(Embedding::new(embedding, self.0.clone()))
    }

    /// The vocabulary as the grammar module takes it.
    ///
    /// # Errors
    /// The file has no tokenizer.
    #[wasm_bindgen(js_name = grammarVocabulary)]
    pub fn grammar_vocabulary(&self) -> JsResult<Vec<u8>> {
        Ok(self.0.with(|model| model.grammar_vocabulary())??.to_bytes())
    }

    /// The most likely next token after each token.
    ///
    /// # Errors
    /// There are no ids, too many, or one is outside the vocabulary.
    pub async fn score(&self, ids: Vec<u32>) -> JsResult<Vec<u32>> {
        let mut model = self.0.take()?;
        let score = model.score(&ids).await;
        self.0.put(model);
        Ok(score?.argmax)
    }

    /// What runs the model and why, as JSON.
    ///
    /// # Errors
    /// Another call is running.
    pub fn diagnostics(&self) -> JsResult<String> {
        Ok(self.0.with(|model| facts(model).to_string())?)
    }

    /// Bytes held by the backend, as JSON.
    ///
    /// # Errors
    /// Another call is running.
    pub fn memory(&self) -> JsResult<String> {
        let memory = self.0.with(|model| model.memory())?;
        let report = json!({
            "weightsBytes": memory.weights_bytes,
            "kvBytes": memory.kv_bytes,
            "scratchBytes": memory.scratch_bytes,
            "gpuBytes": memory.gpu_bytes,
        });
        Ok(report.to_string())
    }
}

fn facts(model: &LoadedModel) -> Value {
    let diagnostics = model.diagnostics();
    let report = diagnostics.report;
    let rejected: Vec<Value> = diagnostics
        .rejected
        .iter()
        .map(|row| json!({ "backend": name_for_js(&row.backend), "reason": row.reason }))
        .collect();
    let variants: Map<String, Value> =
        report.variants.into_iter().map(|(name, variant)| (name, variant.into())).collect();
    let self_test: Vec<Value> = report
        .self_test
        .into_iter()
        .map(|test| match test.error {
            None => json!({ "kernel": test.kernel, "ok": true }),
            Some(error) => json!({ "kernel": test.kernel, "ok": false, "error": error }),
        })
        .collect();
    let matrices: Map<String, Value> = diagnostics
        .weights
        .matrices
        .into_iter()
        .map(|share| (share.layout, json!({ "count": share.matrices, "bytes": share.bytes })))
        .collect();
    let weights = json!({
        "quantization": diagnostics.weights.quantization,
        "reason": diagnostics.weights.reason,
        "bytes": diagnostics.weights.bytes,
        "matrices": matrices,
    });
    json!({
        "backend": name_for_js(diagnostics.backend),
        "reason": diagnostics.reason,
        "rejected": rejected,
        "device": report.device,
        "threads": report.threads,
        "variants": variants,
        "selfTest": self_test,
        "contextTokens": model.info().capacity,
        "weights": weights,
    })
}

/// An answer under way. See `Generation` in `js/hanzo-edge.d.ts`.
#[wasm_bindgen]
pub struct Generation {
    generation: Slot<generate::Generation>,
    model: Slot<LoadedModel>,
    abort: AbortFlag,
    grammar: Option<String>,
}

#[wasm_bindgen]
impl Generation {
    /// The next event, as JSON.
    ///
    /// # Errors
    /// The device failed, or the generation is over.
    pub async fn next(&self) -> JsResult<String> {
        let mut generation = self.generation.take()?;
        let mut model = match self.model.take() {
            Ok(model) => model,
            Err(error) => {
                self.generation.put(generation);
                return Err(error.into());
            }
        };
        let event = model.next(&mut generation).await;
        self.model.put(model);
        self.generation.put(generation);
        let event = event?.ok_or_else(|| Error::internal("the generation is over"))?;
        Ok(event_json(event)?.to_string())
    }

    /// What the answer has to follow, as JSON `{ grammar, option }`; `undefined` when it is free.
    #[must_use]
    pub fn grammar(&self) -> Option<String> {
        self.grammar.clone()
    }

    /// Answers a `mask` event with the tokens that may come next, as bits; none end the answer.
    ///
    /// # Errors
    /// Nothing was asked.
    #[wasm_bindgen(js_name = supplyMask)]
    pub fn supply_mask(&self, bits: Vec<u32>) -> JsResult<()> {
        Ok(self.generation.with(|generation| generation.supply_mask(TokenMask::from_bits(bits)))??)
    }

    /// Ends the generation before its next step.
    pub fn cancel(&self) {
        self.abort.abort();
    }
}

fn event_json(event: Event) -> JsResult<Value> {
    Ok(match event {
        Event::Prompt { done, total } => json!({ "event": "prompt", "done": done, "total": total }),
        Event::Piece(piece) => json!({ "event": "piece", "piece": piece }),
        Event::Thought(piece) => json!({ "event": "thought", "piece": piece }),
        Event::Logprob(entry) => json!({ "event": "logprob", "entry": entry }),
        Event::ToolCall(delta) => json!({ "event": "toolCall", "delta": delta }),
        Event::Mask { accepted } => json!({ "event": "mask", "accepted": accepted }),
        Event::Done(result) => json!({ "event": "done", "result": result_json(*result)? }),
    })
}

fn result_json(mut result: GenerateResult) -> JsResult<Value> {
    result.stats.backend = name_for_js(&result.stats.backend).to_owned();
    Ok(serde_json::to_value(result)?)
}
