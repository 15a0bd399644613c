//! For tests: a model whose every output is known. The logits after a token depend on that token and its position only
//! through a script, and every call is written down.

use crate::backend::{BackendReport, BoxFuture, DeviceSampling, Executable, KernelTime, MemoryUse, Steps, sampling};
use crate::error::{Error, Result};
use crate::quant::BlockFormat;
use std::collections::BTreeMap;

/// Ids of the stub's vocabulary.
pub const VOCAB: usize = 16;

type LogitsOf = Box<dyn Fn(&[u32]) -> Vec<f32> + Send + Sync>;

/// A model that says what its script says.
pub struct Stub {
    /// Position to logits of the next token.
    pub logits_at: Box<dyn Fn(usize) -> Vec<f32> + Send + Sync>,
    /// Tokens held to logits of the next one, instead.
    pub logits_of: Option<LogitsOf>,
    /// Whether it draws tokens itself.
    pub samples: bool,
    /// The tokens in its key/value cache.
    pub held: Vec<u32>,
    /// Calls so far, as `forward 3@0` and `decode 2@5`.
    pub calls: Vec<String>,
    /// The number of the call that fails.
    pub fails_at: Option<usize>,
    /// The most tokens of a call.
    pub max_tokens: usize,
    /// Copies of `held` by place; a token takes a byte.
    pub saved: BTreeMap<usize, Vec<u32>>,
    /// Whether copies can be made.
    pub has_room: bool,
}

impl Stub {
    /// Says `script` after a prompt of `prompt_len` tokens, then token 0 for ever.
    pub fn saying(script: &[u32], prompt_len: usize) -> Self {
        let script = script.to_vec();
        Self::new(move |position| {
            let next = (position + 1).checked_sub(prompt_len).and_then(|index| script.get(index)).copied().unwrap_or(0);
            (0..VOCAB).map(|id| if id == next as usize { 5.0 } else { 0.0 }).collect()
        })
    }

    /// With these logits after each position.
    pub fn new(logits_at: impl Fn(usize) -> Vec<f32> + Send + Sync + 'static) -> Self {
        let (held, calls) = (Vec::new(), Vec::new());
        Self {
            logits_at: Box::new(logits_at),
            logits_of: None,
            samples: false,
            held,
            calls,
            fails_at: None,
            max_tokens: 4,
            saved: BTreeMap::new(),
            has_room: true,
        }
    }

    fn call(&mut self, name: &str, count: usize, position: usize) -> Result<()> {
        self.calls.push(format!("{name} {count}@{position}"));
        if self.fails_at == Some(self.calls.len()) {
            // What was beyond the position is spoilt.
            self.held.truncate(position);
            return Err(Error::device_lost("expected a device, found none"));
        }
        Ok(())
    }

    fn run(&mut self, tokens: &[u32], position: usize) -> Result<()> {
        if position > self.held.len() {
            return Err(Error::internal("a gap in the cache"));
        }
        self.held.truncate(position);
        self.held.extend_from_slice(tokens);
        Ok(())
    }

    fn current(&self) -> Result<Vec<f32>> {
        let last = self.held.len().checked_sub(1).ok_or_else(|| Error::internal("no logits yet"))?;
        Ok(self.logits_of.as_ref().map_or_else(|| (self.logits_at)(last), |logits| logits(&self.held)))
    }

    fn scores(&mut self, tokens: &[u32], position: usize) -> Result<Vec<f32>> {
        self.call("score", tokens.len(), position)?;
        let mut logits = Vec::new();
        for (index, &token) in tokens.iter().enumerate() {
            self.run(&[token], position + index)?;
            logits.extend(self.current()?);
        }
        Ok(logits)
    }

    fn copy_out(&mut self, place: usize, tokens: usize) -> Result<()> {
        self.call("save", tokens, place)?;
        if !self.has_room {
            return Err(Error::out_of_memory("expected room, found none"));
        }
        let held = self.held.get(..tokens).ok_or_else(|| Error::internal("more saved than held"))?;
        self.saved.insert(place, held.to_vec());
        Ok(())
    }

    fn copy_in(&mut self, place: usize, tokens: usize) -> Result<()> {
        self.call("restore", tokens, place)?;
        let saved = self.saved.get(&place).and_then(|saved| saved.get(..tokens));
        self.held = saved.ok_or_else(|| Error::internal("less saved than restored"))?.to_vec();
        Ok(())
    }

    fn draw(&mut self, position: usize, steps: usize, sampling: DeviceSampling) -> Result<Vec<u32>> {
        self.call("decode", steps, position)?;
        let mut tokens = Vec::new();
        for step in (0u32..).take(steps) {
            let token = sampling::draw_from_vocabulary(&self.current()?, &sampling, step);
            let token = token.ok_or_else(|| Error::internal("no finite logit"))?;
            self.run(&[token], position + step as usize)?;
            tokens.push(token);
        }
        Ok(tokens)
    }
}

impl Executable for Stub {
    fn write_weight(&mut self, _: usize, _: usize, _: &'static BlockFormat, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn forward(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<()>> {
        let done = self.call("forward", tokens.len(), position).and_then(|()| self.run(tokens, position));
        Box::pin(async { done })
    }

    fn logits(&mut self) -> BoxFuture<'_, Result<Vec<f32>>> {
        let logits = self.current();
        Box::pin(async { logits })
    }

    fn score(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>> {
        let logits = self.scores(tokens, position);
        Box::pin(async { logits })
    }

    /// Of each token: its id, its position, and one.
    fn hidden(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>> {
        let done = self.call("hidden", tokens.len(), position).and_then(|()| self.run(tokens, position));
        let states = tokens.iter().enumerate().flat_map(|(i, token)| [*token as f32, (position + i) as f32, 1.0]);
        let states = states.collect();
        Box::pin(async { done.map(|()| states) })
    }

    fn samples(&self) -> bool {
        self.samples
    }

    fn decode(&mut self, position: usize, steps: Steps, sampling: DeviceSampling) -> BoxFuture<'_, Result<Vec<u32>>> {
        let tokens = self.draw(position, steps.now, sampling);
        Box::pin(async { tokens })
    }

    fn snapshot_bytes(&self, tokens: usize) -> u64 {
        tokens as u64
    }

    fn save(&mut self, place: usize, tokens: usize) -> BoxFuture<'_, Result<()>> {
        let done = self.copy_out(place, tokens);
        Box::pin(async { done })
    }

    fn restore(&mut self, place: usize, tokens: usize) -> BoxFuture<'_, Result<()>> {
        let done = self.copy_in(place, tokens);
        Box::pin(async { done })
    }

    fn discard(&mut self, place: usize) {
        self.saved.remove(&place);
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn report(&self) -> BackendReport {
        BackendReport::default()
    }

    fn profile(&mut self, on: bool) -> BoxFuture<'_, Result<Vec<KernelTime>>> {
        self.calls.push(format!("profile {on}"));
        Box::pin(async { Ok(Vec::new()) })
    }
}
