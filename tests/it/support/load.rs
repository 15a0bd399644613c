//! Loads model files from memory through the engine's loader, as a page does, and runs them.

use futures::executor::block_on;
use hanzo_edge::engine::{Backend, Clock, EdgeConfig, LoadedModel, Loader, Need};
use hanzo_edge::error::Result;
use hanzo_edge::generate::{Event, GenerateOptions, GenerateResult};

/// A clock that stands still.
const CLOCK: Clock = Clock { now_ms: || 0.0, utc_offset_minutes: 0 };

/// Loads the model of these files, for 64 tokens.
pub fn load(files: &[Vec<u8>], backend: Backend) -> Result<LoadedModel> {
    load_with(files, EdgeConfig { backend, max_context_tokens: 64, threads: 1, ..EdgeConfig::default() })
}

/// Loads the model of these files as `config` says, but for where it is.
pub fn load_with(files: &[Vec<u8>], config: EdgeConfig) -> Result<LoadedModel> {
    let lengths = files.iter().map(|file| Some(file.len() as u64)).collect();
    let mut loader = Loader::new(config, lengths, Vec::new(), CLOCK)?;
    loop {
        match loader.need() {
            Need::Prefix { shard, bytes } => loader.supply(&files[shard][..bytes as usize])?,
            Need::Range { shard, range } => loader.supply(&files[shard][range.start as usize..range.end as usize])?,
            Need::Open => block_on(loader.open())?,
            Need::Finish => {
                if let Some(model) = block_on(loader.finish())? {
                    return Ok(model);
                }
            }
        }
    }
}

/// Greedy continuation of a prompt by up to `n` tokens.
pub fn generate(model: &mut LoadedModel, prompt: Vec<u32>, n: u32) -> Result<GenerateResult> {
    let options = GenerateOptions { max_tokens: Some(n), temperature: Some(0.0), ..GenerateOptions::default() };
    let mut generation = model.start(prompt, &options)?.generation;
    loop {
        if let Some(Event::Done(result)) = block_on(model.next(&mut generation))? {
            return Ok(*result);
        }
    }
}
