//! The native face: a loaded model behind a lock, and streams of text. Weights come from mapped files.

use super::chat::ChatOptions;
use super::config::{EdgeConfig, Model};
use super::embed::{EmbedInput, EmbedOptions};
use super::loader::{Loader, Need};
use super::message::Message;
use super::model::{Clock, Diagnostics, LoadedModel, MemoryReport, ModelInfo, Score};
use crate::backend::KernelTime;
use crate::bytes::{self, ByteSource};
use crate::error::{Context as _, Error, Result};
use crate::format::gguf::shard_names;
use crate::generate::{AbortFlag, Event, GenerateOptions, GenerateResult, Generation};
use crate::{models, registry};
use futures::Stream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

/// A loaded model: chats, completes, tokenizes. Cheap to share by reference; one stream at a time.
pub struct Edge {
    model: Arc<Mutex<LoadedModel>>,
}

impl Edge {
    /// Loads a model; a registry model that is not in the cache yet is downloaded first.
    ///
    /// # Errors
    /// The file is missing, damaged or of an unknown kind; no backend takes it; memory does not suffice.
    pub fn new(config: EdgeConfig) -> Result<Self> {
        let path = resolve(&config.model)?;
        Self::open(&path, config).map_err(|error| error.at(path.display().to_string()))
    }

    fn open(path: &Path, config: EdgeConfig) -> Result<Self> {
        let files = shards(path).iter().map(|path| bytes::open(path)).collect::<Result<Vec<ByteSource>>>()?;
        let lengths = files.iter().map(|file| Some(file.len())).collect();
        let mut loader = Loader::new(config, lengths, Vec::new(), Clock { now_ms, utc_offset_minutes: 0 })?;
        let model = loop {
            match loader.need() {
                Need::Prefix { shard, bytes } => loader.supply(files[shard].prefix(bytes))?,
                Need::Range { shard, range } => loader.supply(files[shard].read(range)?)?,
                Need::Open => pollster::block_on(loader.open())?,
                Need::Finish => {
                    if let Some(model) = pollster::block_on(loader.finish())? {
                        break model;
                    }
                }
            }
        };
        Ok(Self { model: Arc::new(Mutex::new(model)) })
    }

    /// Answers a conversation with the model's own sampling defaults.
    ///
    /// # Errors
    /// The template is missing or refuses the conversation, or the prompt does not fit the context.
    pub fn chat(&self, messages: Vec<Message>) -> Result<TokenStream> {
        self.chat_with(messages, ChatOptions::default())
    }

    /// As [`Edge::chat`], with options.
    pub fn chat_with(&self, messages: Vec<Message>, options: ChatOptions) -> Result<TokenStream> {
        let messages = messages.iter().map(|message| {
            serde_json::to_value(message).map_err(|error| Error::internal("a message is no JSON").because(error))
        });
        let messages = messages.collect::<Result<Vec<_>>>()?;
        let model = self.lock()?;
        let generation = model.start_chat(&messages, &options)?.generation;
        Ok(self.stream(generation))
    }

    /// Continues a text, without a template.
    pub fn complete(&self, prompt: &str, options: GenerateOptions) -> Result<TokenStream> {
        let model = self.lock()?;
        let prompt = model.complete_prompt(prompt)?;
        let generation = model.start(prompt, &options)?.generation;
        Ok(self.stream(generation))
    }

    /// Continues token ids; works on files without a tokenizer, whose pieces are empty.
    pub fn complete_tokens(&self, prompt: Vec<u32>, options: GenerateOptions) -> Result<TokenStream> {
        let generation = self.lock()?.start(prompt, &options)?.generation;
        Ok(self.stream(generation))
    }

    /// A vector for each text, `[hidden_size]` unless the options say otherwise. Streams may go on meanwhile: what the cache
    /// held for them is copied away, or run again.
    ///
    /// # Errors
    /// An option is out of range, or a text is empty or longer than the context; its place is named.
    pub fn embed<T: AsRef<str>>(&self, texts: &[T], options: &EmbedOptions) -> Result<Vec<Vec<f32>>> {
        let inputs: Vec<EmbedInput> = texts.iter().map(|text| EmbedInput::Text(text.as_ref().to_owned())).collect();
        self.embed_inputs(&inputs, options)
    }

    /// As [`Edge::embed`], for token ids, which are taken as they are; works on files without a tokenizer.
    ///
    /// # Errors
    /// As [`Edge::embed`], and for an id outside the vocabulary.
    pub fn embed_tokens(&self, sequences: &[Vec<u32>], options: &EmbedOptions) -> Result<Vec<Vec<f32>>> {
        let inputs: Vec<EmbedInput> = sequences.iter().cloned().map(EmbedInput::Tokens).collect();
        self.embed_inputs(&inputs, options)
    }

    fn embed_inputs(&self, inputs: &[EmbedInput], options: &EmbedOptions) -> Result<Vec<Vec<f32>>> {
        let mut embedding = self.lock()?.start_embedding(inputs, options)?;
        let mut vectors = Vec::with_capacity(inputs.len());
        while !embedding.is_over() {
            // Others come in between two inputs only: within one they would make it run again.
            let mut model = self.lock()?;
            let vector = loop {
                if let Some(vector) = pollster::block_on(model.next_vector(&mut embedding))? {
                    break vector;
                }
            };
            vectors.push(vector);
        }
        Ok(vectors)
    }

    /// Ids of a text, control tokens parsed, none added.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>> {
        self.lock()?.tokenize(text)
    }

    /// The ids that [`Edge::complete`] would run: with what the file puts before a text.
    pub fn prompt_ids(&self, prompt: &str) -> Result<Vec<u32>> {
        self.lock()?.complete_prompt(prompt)
    }

    /// Text of ids.
    pub fn detokenize(&self, ids: &[u32]) -> Result<String> {
        self.lock()?.detokenize(ids)
    }

    /// Logits after the last token, `[vocab_size]`.
    pub fn logits(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        pollster::block_on(self.lock()?.logits(tokens))
    }

    /// Teacher-forced scores of a text.
    pub fn score(&self, tokens: &[u32]) -> Result<Score> {
        pollster::block_on(self.lock()?.score(tokens))
    }

    /// What was loaded.
    pub fn info(&self) -> Result<ModelInfo> {
        Ok(self.lock()?.info().clone())
    }

    /// Which backend runs and why, and how its kernels were chosen.
    pub fn diagnostics(&self) -> Result<Diagnostics> {
        Ok(self.lock()?.diagnostics())
    }

    /// Bytes held.
    pub fn memory(&self) -> Result<MemoryReport> {
        Ok(self.lock()?.memory())
    }

    /// Starts or stops measuring kernels; answers the times since the start.
    pub fn profile(&self, on: bool) -> Result<Vec<KernelTime>> {
        pollster::block_on(self.lock()?.profile(on))
    }

    fn lock(&self) -> Result<MutexGuard<'_, LoadedModel>> {
        lock(&self.model)
    }

    fn stream(&self, generation: Generation) -> TokenStream {
        let abort = generation.abort_flag();
        TokenStream { model: Arc::clone(&self.model), generation: Some(generation), abort, result: None }
    }
}

fn lock(model: &Mutex<LoadedModel>) -> Result<MutexGuard<'_, LoadedModel>> {
    model.lock().map_err(|_| Error::closed("the engine stopped when a thread panicked while using it"))
}

/// Pieces of an answer as they are made: whole characters. Dropping it ends the work.
pub struct TokenStream {
    model: Arc<Mutex<LoadedModel>>,
    generation: Option<Generation>,
    abort: AbortFlag,
    result: Option<GenerateResult>,
}

impl TokenStream {
    /// The result, once the stream has ended.
    #[must_use]
    pub fn result(&self) -> Option<&GenerateResult> {
        self.result.as_ref()
    }

    /// Ends the stream at the next step; the result has the text so far.
    pub fn cancel(&self) {
        self.abort.abort();
    }

    /// A handle that ends the stream from elsewhere, such as a signal handler.
    #[must_use]
    pub fn abort_flag(&self) -> AbortFlag {
        self.abort.clone()
    }

    /// The next event: prompt, text, thoughts, calls of functions. After [`Event::Done`], whose result
    /// [`TokenStream::result`] gives too, there is none.
    ///
    /// # Errors
    /// What the backend or the tokenizer report; the stream has ended then.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        let Some(generation) = &mut self.generation else { return Ok(None) };
        let event = lock(&self.model).and_then(|mut model| pollster::block_on(model.next(generation)));
        match &event {
            Ok(Some(Event::Done(result))) => self.result = Some((**result).clone()),
            Ok(Some(_)) => return event,
            Ok(None) | Err(_) => {}
        }
        self.generation = None;
        event
    }

    fn step(&mut self) -> Result<Option<String>> {
        while let Some(event) = self.next_event()? {
            if let Event::Piece(piece) = event {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }
}

impl Stream for TokenStream {
    type Item = Result<String>;

    /// Computes the next piece on the calling thread.
    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.step().transpose())
    }
}

/// The system's clock.
fn now_ms() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// The path of a model, after a download where it must come first.
fn resolve(model: &Model) -> Result<PathBuf> {
    let locate = |name: &str| {
        // Before a download, since the file could not be run after it.
        models::find(&registry::find(name)?.architecture).at(|| name)?;
        registry::locate(name, &mut |_| {})
    };
    match model {
        Model::Default => {
            let entry = registry::default_model().ok_or_else(|| Error::internal("the registry is empty"))?;
            locate(&entry.name)
        }
        Model::Zen3Nano => locate("zen3-nano"),
        Model::File(path) => Ok(path.clone()),
        Model::Named(name) if name.starts_with("http://") || name.starts_with("https://") => {
            registry::fetch_url(name, &mut |_| {})
        }
        Model::Named(name) if registry::find(name).is_ok() => locate(name),
        Model::Named(name) if Path::new(name).exists() => Ok(PathBuf::from(name)),
        Model::Named(name) => Err(registry::find(name).err().unwrap_or_else(|| Error::not_found(name.as_str()))),
    }
}

/// All files of a split model, or the one file.
fn shards(path: &Path) -> Vec<PathBuf> {
    let names = path.file_name().and_then(|name| name.to_str()).and_then(shard_names);
    names.map_or_else(|| vec![path.to_path_buf()], |names| names.iter().map(|name| path.with_file_name(name)).collect())
}
