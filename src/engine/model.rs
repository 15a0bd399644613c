//! A loaded model: prompts, generations, scores. Knows no files and no platform.

use super::chat::{self, ChatOptions};
use super::constraints::Constraints;
use super::embed::{self, EmbedInput, EmbedOptions};
use super::text::Text;
use super::weights::HeldWeights;
use crate::backend::{BackendReport, Executable, KernelTime, MemoryUse};
use crate::error::{Context as _, Error, Result};
use crate::format::ModelFile;
use crate::generate::{
    Embedding, Event, GenerateOptions, Generation, GenerationContext, Grammar, NoText, Pieces, SamplingDefaults,
    TextPieces, TokenCache, TokenVocabulary, log_softmax_of,
};
use crate::models::Hparams;
use crate::text::{AnswerReader, Special};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Where the time comes from, since the platform's clock is not there in every WASM module.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Milliseconds since 1970, UTC.
    pub now_ms: fn() -> f64,
    /// What the local time is ahead of UTC, in minutes.
    pub utc_offset_minutes: i32,
}

impl Clock {
    pub(super) fn local(self) -> crate::text::Clock {
        let unix_seconds = ((self.now_ms)() / 1e3) as i64;
        crate::text::Clock { unix_seconds, utc_offset_minutes: self.utc_offset_minutes }
    }
}

/// A backend that was tried or ruled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Its name.
    pub backend: String,
    /// Why it does not run the model.
    pub reason: String,
}

impl Rejection {
    /// `backend: reason` of each, for messages.
    pub(crate) fn list(rejected: &[Self]) -> String {
        rejected.iter().map(|row| format!("{}: {}", row.backend, row.reason)).collect::<Vec<_>>().join("; ")
    }
}

/// What was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The name of the model in the file, where it has one.
    pub name: Option<String>,
    /// Sizes.
    pub hparams: Hparams,
    /// Tokens of context.
    pub capacity: usize,
    /// Bytes of the weights in the file.
    pub weight_bytes: u64,
    /// How the weights are held.
    pub weights: HeldWeights,
    /// The backend that runs it.
    pub backend: &'static str,
    /// Those that were tried before.
    pub rejected: Vec<Rejection>,
    /// How the file says that the states of a text become a vector, by llama.cpp's numbers.
    pub pooling_type: Option<i64>,
    sampling: SamplingDefaults,
}

impl ModelInfo {
    pub(crate) fn new(
        file: &ModelFile,
        backend: &'static str,
        (capacity, weights): (usize, HeldWeights),
        rejected: Vec<Rejection>,
    ) -> Result<Self> {
        let name = file.metadata.get::<&str>("general.name")?.map(str::to_owned);
        Ok(Self {
            name,
            hparams: Hparams::read(file)?,
            capacity,
            weight_bytes: file.weight_bytes(),
            weights,
            backend,
            rejected,
            pooling_type: pooling_type(file)?,
            sampling: sampling_defaults(file)?,
        })
    }

    /// Refuses ids outside the vocabulary.
    pub(super) fn check_ids(&self, ids: &[u32]) -> Result<()> {
        let vocab_size = self.hparams.vocab_size;
        match ids.iter().find(|id| **id as usize >= vocab_size) {
            Some(id) => Err(Error::invalid_argument(format!("tokens: expected ids below {vocab_size}, found {id}"))),
            None => Ok(()),
        }
    }
}

fn pooling_type(file: &ModelFile) -> Result<Option<i64>> {
    let architecture: &str = file.metadata.require("general.architecture")?;
    file.metadata.get(&format!("{architecture}.pooling_type"))
}

/// What the file says about sampling; values out of their range are passed over later.
fn sampling_defaults(file: &ModelFile) -> Result<SamplingDefaults> {
    let number = |name: &str| file.metadata.get::<f32>(&format!("general.sampling.{name}"));
    Ok(SamplingDefaults {
        temperature: number("temp")?,
        top_k: file.metadata.get::<i64>("general.sampling.top_k")?,
        top_p: number("top_p")?,
        min_p: number("min_p")?,
        repeat_penalty: number("penalty_repeat")?,
    })
}

/// Teacher-forced scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// The most likely token after each token given.
    pub argmax: Vec<u32>,
    /// Log-probability of each token given but the first.
    pub logprob: Vec<f32>,
}

/// Which backend runs and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostics {
    /// The backend's name.
    pub backend: &'static str,
    /// Why it was chosen.
    pub reason: String,
    /// Those tried before.
    pub rejected: Vec<Rejection>,
    /// How the weights are held.
    pub weights: HeldWeights,
    /// What the backend says of itself.
    pub report: BackendReport,
}

/// Bytes held.
pub type MemoryReport = MemoryUse;

/// An answer that was started.
pub struct Started {
    /// The answer.
    pub generation: Generation,
    /// What it has to follow, with the option that says so. On the web another module follows it.
    pub grammar: Option<(Grammar, &'static str)>,
}

/// A model on a device with its text side and the history of its cache.
pub struct LoadedModel {
    executable: Box<dyn Executable>,
    text: Text,
    info: ModelInfo,
    cache: TokenCache,
    constraints: Constraints,
    clock: Clock,
}

impl LoadedModel {
    pub(crate) fn new(
        executable: Box<dyn Executable>,
        text: Text,
        info: ModelInfo,
        cache: TokenCache,
        clock: Clock,
    ) -> Self {
        Self { executable, text, info, cache, constraints: Constraints::default(), clock }
    }

    /// What was loaded.
    #[must_use]
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Whether the model takes text.
    #[must_use]
    pub fn has_tokenizer(&self) -> bool {
        self.text.has_tokenizer()
    }

    /// Ids of a text: control tokens parsed, none added.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>> {
        self.text.tokenizer()?.encode(text, Special::Parse)
    }

    /// Text of ids, control tokens left out.
    pub fn detokenize(&self, ids: &[u32]) -> Result<String> {
        self.info.check_ids(ids)?;
        self.text.tokenizer()?.decode(ids)
    }

    /// Ids of a raw prompt: with what the file puts before a text.
    pub fn complete_prompt(&self, prompt: &str) -> Result<Vec<u32>> {
        self.text.tokenizer()?.encode_wrapped(prompt)
    }

    /// Ids of a conversation rendered by the template, ready for the answer.
    pub fn chat_prompt(&self, messages: &[Value], options: &ChatOptions) -> Result<Vec<u32>> {
        Ok(chat::prepare(&self.text, messages, options, self.clock, 0)?.prompt)
    }

    /// Starts to answer a conversation; drive it with [`LoadedModel::next`].
    ///
    /// # Errors
    /// The template is missing or refuses the conversation, an option is wrong, or the prompt does not fit the context.
    pub fn start_chat(&self, messages: &[Value], options: &ChatOptions) -> Result<Started> {
        let seed = options.generate.seed.unwrap_or_else(|| self.random_seed());
        let chat::Prepared { prompt, grammar, reader, spelled } =
            chat::prepare(&self.text, messages, options, self.clock, seed)?;
        self.start_reading(prompt, &options.generate, reader, spelled, grammar)
    }

    /// Starts to answer a prompt; drive it with [`LoadedModel::next`].
    ///
    /// # Errors
    /// An option is out of range, an id is outside the vocabulary, or the prompt does not fit the context.
    pub fn start(&self, prompt: Vec<u32>, options: &GenerateOptions) -> Result<Started> {
        self.start_reading(prompt, options, AnswerReader::default(), Vec::new(), options.response_format.clone())
    }

    fn start_reading(
        &self,
        prompt: Vec<u32>,
        options: &GenerateOptions,
        reader: AnswerReader,
        spelled: Vec<u32>,
        grammar: Option<Grammar>,
    ) -> Result<Started> {
        let (end_ids, pieces): (Vec<u32>, Box<dyn Pieces>) = match self.text.tokenizer() {
            Ok(tokenizer) => {
                let pieces = TextPieces::new(Arc::clone(tokenizer), spelled);
                (tokenizer.end_of_turn_ids().to_vec(), Box::new(pieces))
            }
            Err(_) => (Vec::new(), Box::new(NoText)),
        };
        let place = if options.response_format.is_some() { "responseFormat" } else { "tools" };
        let make = |grammar| self.constraints.make(grammar, || self.grammar_vocabulary());
        let report = self.executable.report();
        let context = GenerationContext {
            vocab_size: self.info.hparams.vocab_size,
            capacity: self.info.capacity,
            end_ids,
            defaults: self.info.sampling,
            pieces,
            reader,
            constraint: grammar.as_ref().map(make).transpose().at(|| place)?,
            now_ms: self.clock.now_ms,
            random_seed: self.random_seed(),
            backend: self.info.backend.to_owned(),
            threads: (report.threads > 0).then_some(report.threads),
        };
        Ok(Started {
            generation: Generation::new(prompt, options, context)?,
            grammar: grammar.map(|grammar| (grammar, place)),
        })
    }

    /// Starts to embed; drive it with [`LoadedModel::next_vector`].
    ///
    /// # Errors
    /// An option is out of range, or an input is empty, too long, or has an id outside the vocabulary; its place is named.
    pub fn start_embedding(&self, inputs: &[EmbedInput], options: &EmbedOptions) -> Result<Embedding> {
        embed::prepare(&self.text, &self.info, inputs, options)
    }

    /// Runs the next part of an embedding; answers a vector when one is done.
    pub async fn next_vector(&mut self, embedding: &mut Embedding) -> Result<Option<Vec<f32>>> {
        embedding.next(self.executable.as_mut(), &mut self.cache).await
    }

    /// The vocabulary as grammars see it.
    pub fn grammar_vocabulary(&self) -> Result<TokenVocabulary> {
        self.text.grammar_vocabulary(self.info.hparams.vocab_size)
    }

    fn random_seed(&self) -> u64 {
        (self.clock.now_ms)().to_bits()
    }

    /// The next event of a generation; `None` after its end.
    pub async fn next(&mut self, generation: &mut Generation) -> Result<Option<Event>> {
        generation.next(self.executable.as_mut(), &mut self.cache).await
    }

    /// Logits after the last token, `[vocab_size]`.
    pub async fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check_prompt(tokens)?;
        self.cache.clear();
        let mut position = 0;
        for chunk in tokens.chunks(self.executable.max_tokens()) {
            self.executable.forward(chunk, position).await?;
            position += chunk.len();
        }
        self.executable.logits().await
    }

    /// Teacher-forced scores of a text.
    pub async fn score(&mut self, tokens: &[u32]) -> Result<Score> {
        self.check_prompt(tokens)?;
        self.cache.clear();
        let vocab_size = self.info.hparams.vocab_size;
        let mut score = Score { argmax: Vec::new(), logprob: Vec::new() };
        // Few rows at once: a row of logits is large.
        for start in (0..tokens.len()).step_by(self.executable.max_tokens().min(64)) {
            let end = (start + self.executable.max_tokens().min(64)).min(tokens.len());
            let logits = self.executable.score(&tokens[start..end], start).await?;
            for (i, row) in logits.chunks(vocab_size).enumerate() {
                score.argmax.push(argmax(row)?);
                if let Some(&next) = tokens.get(start + i + 1) {
                    score.logprob.push(log_softmax_of(row, next));
                }
            }
        }
        Ok(score)
    }

    /// Which backend runs and why.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        let rejected = self.info.rejected.clone();
        let reason = match rejected.as_slice() {
            [] => "the first choice works".to_owned(),
            rejected => {
                format!("fallback ({})", Rejection::list(rejected))
            }
        };
        let weights = self.info.weights.clone();
        Diagnostics { backend: self.info.backend, reason, rejected, weights, report: self.executable.report() }
    }

    /// Bytes held.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        self.executable.memory()
    }

    /// Starts or stops measuring kernels; answers the times since the start.
    pub async fn profile(&mut self, on: bool) -> Result<Vec<KernelTime>> {
        self.executable.profile(on).await
    }

    fn check_prompt(&self, tokens: &[u32]) -> Result<()> {
        self.info.check_ids(tokens)?;
        let capacity = self.info.capacity;
        if tokens.is_empty() {
            return Err(Error::invalid_argument("tokens: expected at least one, found none"));
        }
        if tokens.len() > capacity {
            return Err(Error::context_overflow(format!("expected at most {capacity} tokens, found {}", tokens.len())));
        }
        Ok(())
    }
}

/// The lowest id of the highest logit.
fn argmax(logits: &[f32]) -> Result<u32> {
    let mut best = None;
    for (id, &logit) in logits.iter().enumerate() {
        if !logit.is_nan() && best.is_none_or(|(_, highest)| logit > highest) {
            best = Some((id as u32, logit));
        }
    }
    best.map(|(id, _)| id).ok_or_else(|| Error::internal("every logit is NaN"))
}
