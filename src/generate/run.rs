//! One generation as a machine of small steps: the prompt in chunks, then token after token. Between steps the caller
//! has control, so that a native stream, a pull from JS and an abort all work alike.
//!
//! Holds no backend and no cache: both come with each step. The time comes from the context's function.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::cache::TokenCache;
use super::constraint::{Permission, TokenConstraint, TokenMask};
use super::draft::Drafter;
use super::logprobs::{RawLogprobs, TokenLogprob};
use super::options::{GenerateOptions, SamplingDefaults};
use super::pieces::Pieces;
use super::result::{FinishReason, GenerateResult, Stats, Usage};
use super::sampler::{History, Sampler};
use super::stop::StopMatcher;
use crate::backend::{Executable, Steps};
use crate::error::{Error, Result};
use crate::text::{AnswerPart, AnswerReader, ToolCallDelta};

/// The most prompt tokens of one step.
pub(super) const CHUNK_TOKENS: usize = 512;
/// The most tokens drawn by a device in one step.
const MOST_STEPS: usize = 32;
/// The most tokens drawn by a device in one step while tokens are guessed ahead: a guess may be possible after each.
const MOST_STEPS_BETWEEN_DRAFTS: usize = 4;
/// How long a step with several tokens may take: pieces should arrive evenly and an abort act at once.
const STEP_MS: f64 = 32.0;

/// Calls a generation off, from anywhere.
#[derive(Debug, Clone, Default)]
pub struct AbortFlag(Arc<AtomicBool>);

impl AbortFlag {
    /// Ends the generation before its next step.
    pub fn abort(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was called off.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a generation needs to know of the model and the world.
pub struct GenerationContext {
    /// Ids of the model.
    pub vocab_size: usize,
    /// Tokens that the context window holds.
    pub capacity: usize,
    /// Ids that end a turn.
    pub end_ids: Vec<u32>,
    /// What the model's file says about sampling.
    pub defaults: SamplingDefaults,
    /// Where the text comes from.
    pub pieces: Box<dyn Pieces>,
    /// What the text means.
    pub reader: AnswerReader,
    /// What the answer has to follow once the model is done thinking.
    pub constraint: Option<Box<dyn TokenConstraint>>,
    /// A clock, in milliseconds.
    pub now_ms: fn() -> f64,
    /// The seed used when the options name none.
    pub random_seed: u64,
    /// What runs the model, for the statistics.
    pub backend: String,
    /// Threads that compute, for the statistics.
    pub threads: Option<usize>,
}

/// What a step led to.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Part of the prompt was run.
    Prompt {
        /// Prompt tokens run or found in the cache.
        done: usize,
        /// Prompt tokens in all.
        total: usize,
    },
    /// Text to add to the answer, in whole characters, never empty.
    Piece(String),
    /// Text to add to the thoughts before the answer, never empty.
    Thought(String),
    /// More of a call of a function.
    ToolCall(ToolCallDelta),
    /// The log-probability of a token, where asked for; it comes before the text that the token ends.
    Logprob(TokenLogprob),
    /// Which tokens may come next has to be said, by [`Generation::supply_mask`]: the constraint is computed elsewhere.
    Mask {
        /// The tokens since it was asked last.
        accepted: Vec<u32>,
    },
    /// The end; nothing follows.
    Done(Box<GenerateResult>),
}

enum Phase {
    Start,
    Prompt,
    Answer,
    Ended,
}

/// One generation.
pub struct Generation {
    prompt: Vec<u32>,
    /// Tokens to produce at most, and the reason given when that many were.
    limit: usize,
    limit_reason: FinishReason,
    end_ids: Vec<u32>,
    sampler: Sampler,
    history: History,
    /// Guesses ahead, where that was asked for.
    drafter: Option<Drafter>,
    stop: StopMatcher,
    context: GenerationContext,
    abort: AbortFlag,
    profile: bool,
    phase: Phase,
    /// What this generation holds of the cache.
    claim: Option<u64>,
    events: VecDeque<Event>,
    /// Tokens drawn, not yet looked at.
    drawn: VecDeque<(u32, Option<RawLogprobs>)>,
    /// A token drawn by the host, not yet run.
    not_run: Option<u32>,
    /// How many tokens a device draws in its next step.
    n_steps: usize,
    text: String,
    thoughts: String,
    tokens: Vec<u32>,
    logprobs: Option<Vec<TokenLogprob>>,
    cached: usize,
    started_ms: Option<f64>,
    first_token_ms: Option<f64>,
}

impl Generation {
    /// A generation that has not begun. Nothing is run before the first [`Generation::next`].
    ///
    /// # Errors
    /// `invalid-argument` for an option out of range, an empty prompt or an id outside the vocabulary;
    /// `context-overflow` when the prompt leaves no room for an answer.
    pub fn new(prompt: Vec<u32>, options: &GenerateOptions, context: GenerationContext) -> Result<Self> {
        let settings = options.settings(&context.defaults)?;
        let max_tokens = options.max_tokens.map(|count| count as usize);
        check_prompt(&prompt, max_tokens, &context)?;
        check_bias(&settings.logit_bias, context.vocab_size)?;
        let room = context.capacity.saturating_sub(prompt.len());
        let (limit, limit_reason) = match max_tokens {
            Some(max_tokens) if max_tokens <= room => (max_tokens, FinishReason::Length),
            _ => (room, FinishReason::Context),
        };
        Ok(Self {
            limit,
            limit_reason,
            end_ids: if options.ignore_end { Vec::new() } else { context.end_ids.clone() },
            logprobs: settings.logprobs.map(|_| Vec::new()),
            sampler: Sampler::new(settings, options.seed.unwrap_or(context.random_seed)),
            history: History::new(&prompt),
            drafter: (options.speculative > 0).then(|| Drafter::new(options.speculative as usize)),
            stop: StopMatcher::new(&options.stop)?,
            prompt,
            context,
            abort: AbortFlag::default(),
            profile: options.profile,
            phase: Phase::Start,
            claim: None,
            events: VecDeque::new(),
            drawn: VecDeque::new(),
            not_run: None,
            n_steps: 1,
            text: String::new(),
            thoughts: String::new(),
            tokens: Vec::new(),
            cached: 0,
            started_ms: None,
            first_token_ms: None,
        })
    }

    /// What calls this generation off.
    #[must_use]
    pub fn abort_flag(&self) -> AbortFlag {
        self.abort.clone()
    }

    /// Works until there is something to tell; `None` after the end. `cache` must be the history of `executable`'s
    /// key/value cache, and stays so, whatever happens here, also when the future is dropped.
    ///
    /// # Errors
    /// What the backend or the tokenizer report; the generation has ended then.
    pub async fn next(&mut self, executable: &mut dyn Executable, cache: &mut TokenCache) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if let Err(error) = self.step(executable, cache).await {
                self.phase = Phase::Ended;
                // A device may report late what it could not do, so nothing of the run counts.
                cache.clear();
                if self.is_profiled() {
                    // The error before says more than one of this.
                    let _ = executable.profile(false).await;
                }
                return Err(error);
            }
            if self.is_profiled() && matches!(self.phase, Phase::Ended) {
                self.finish_profile(executable).await?;
            }
            if self.events.is_empty() && matches!(self.phase, Phase::Ended) {
                return Ok(None);
            }
        }
    }

    /// Takes the answer to [`Event::Mask`]; an empty set ends the answer.
    ///
    /// # Errors
    /// Nothing was asked.
    pub fn supply_mask(&mut self, mask: TokenMask) -> Result<()> {
        match &mut self.context.constraint {
            Some(constraint) => constraint.supply(mask),
            None => Err(Error::internal("a mask was given to an answer without a constraint")),
        }
    }

    async fn step(&mut self, executable: &mut dyn Executable, cache: &mut TokenCache) -> Result<()> {
        match self.phase {
            Phase::Ended => {}
            _ if self.abort.is_aborted() => self.end(FinishReason::Abort)?,
            Phase::Start => {
                if self.profile {
                    executable.profile(true).await?;
                }
                self.started_ms = Some((self.context.now_ms)());
                self.cached = self.claim(executable, cache).await?;
                self.phase = Phase::Prompt;
            }
            Phase::Prompt | Phase::Answer if !self.claim.is_some_and(|claim| cache.is_claimed_by(claim)) => {
                self.claim(executable, cache).await?;
            }
            // After another generation took the cache in the middle of the answer, the answer so far is run again too.
            Phase::Answer if self.n_to_run(cache) > 0 => self.run_chunk(executable, cache).await?,
            Phase::Prompt => self.run_chunk(executable, cache).await?,
            Phase::Answer => match self.drawn.pop_front() {
                Some((token, logprobs)) => self.take(token, logprobs)?,
                None if self.tokens.len() >= self.limit => self.end_at_limit()?,
                None => self.draw(executable, cache).await?,
            },
        }
        Ok(())
    }

    /// Whether kernels are being measured: what ended before it started did not begin to.
    fn is_profiled(&self) -> bool {
        self.profile && self.started_ms.is_some()
    }

    /// Puts the times of the kernels into the result.
    async fn finish_profile(&mut self, executable: &mut dyn Executable) -> Result<()> {
        self.profile = false;
        let times = executable.profile(false).await?;
        if let Some(Event::Done(result)) = self.events.back_mut() {
            result.stats.kernels = Some(times);
        }
        Ok(())
    }

    /// Takes the cache; answers how much of the tokens so far it holds.
    async fn claim(&mut self, executable: &mut dyn Executable, cache: &mut TokenCache) -> Result<usize> {
        let claim = cache.claim(executable, &self.sequence()).await?;
        self.claim = Some(claim.number);
        Ok(claim.reused)
    }

    /// The tokens that have to be in the cache before the next draw: prompt and answer, without a last token that the
    /// host drew and that runs with the next draw.
    fn sequence(&self) -> Vec<u32> {
        let drawn = self.drawn.iter().map(|(token, _)| token);
        let mut sequence: Vec<u32> = self.prompt.iter().chain(&self.tokens).chain(drawn).copied().collect();
        sequence.truncate(sequence.len() - usize::from(self.not_run.is_some()));
        sequence
    }

    fn n_to_run(&self, cache: &TokenCache) -> usize {
        let n_answer = self.tokens.len() + self.drawn.len() - usize::from(self.not_run.is_some());
        (self.prompt.len() + n_answer).saturating_sub(cache.tokens().len())
    }

    /// Runs the next part of the prompt, or of the tokens so far.
    async fn run_chunk(&mut self, executable: &mut dyn Executable, cache: &mut TokenCache) -> Result<()> {
        let position = cache.tokens().len();
        let sequence = self.sequence();
        let rest = sequence.get(position..).unwrap_or_default();
        let chunk = rest.get(..executable.max_tokens().clamp(1, CHUNK_TOKENS)).unwrap_or(rest);
        executable.forward(chunk, position).await?;
        cache.extend(chunk);
        if matches!(self.phase, Phase::Answer) {
            return Ok(());
        }
        let (done, total) = (cache.tokens().len(), self.prompt.len());
        if done == total {
            self.phase = Phase::Answer;
        }
        self.events.push_back(Event::Prompt { done, total });
        Ok(())
    }

    /// Draws one token on the host, several on the device, or as many as a guess has right.
    async fn draw(&mut self, executable: &mut dyn Executable, cache: &mut TokenCache) -> Result<()> {
        let draft = self.draft();
        if !draft.is_empty() {
            return match self.not_run {
                Some(token) => self.verify(executable, cache, token, &draft).await,
                // The first token is drawn alone: a guess is run together with a token before it.
                None => self.draw_on_host(executable, cache).await,
            };
        }
        let device =
            self.sampler.device_sampling().filter(|_| executable.samples() && self.context.constraint.is_none());
        let Some(sampling) = device else {
            return self.draw_on_host(executable, cache).await;
        };
        self.run_drawn(executable, cache).await?;
        let most = if self.drafter.is_some() { MOST_STEPS_BETWEEN_DRAFTS } else { MOST_STEPS };
        let steps = self.n_steps.min(most).min(self.limit - self.tokens.len());
        let begin_ms = (self.context.now_ms)();
        // After a few tokens with a drafter, a guess may come instead.
        let more = self.drafter.is_none() && self.tokens.len() + steps < self.limit;
        let wanted = Steps { now: steps, more };
        let tokens = executable.decode(cache.tokens().len(), wanted, sampling).await?;
        self.check_drawn(&tokens, steps)?;
        cache.extend(&tokens);
        self.sampler.advance(u32::try_from(steps).unwrap_or(u32::MAX));
        self.n_steps = next_steps(self.n_steps, ((self.context.now_ms)() - begin_ms) / steps as f64);
        tokens.into_iter().for_each(|token| self.hold(token, None));
        Ok(())
    }

    async fn draw_on_host(&mut self, executable: &mut dyn Executable, cache: &mut TokenCache) -> Result<()> {
        self.run_drawn(executable, cache).await?;
        // A device may still run that token while the mask is made.
        let mask = match self.permission()? {
            Permission::Any => None,
            Permission::Tokens(mask) => Some(mask),
            Permission::End => return self.end(FinishReason::Stop),
            Permission::Ask(_) => return Ok(()),
        };
        let mut logits = executable.logits().await?;
        self.check_logits(&logits, 1)?;
        let (token, logprobs) = self.sampler.sample(&mut logits, &self.history, mask.as_ref())?;
        self.not_run = Some(token);
        self.hold(token, logprobs);
        Ok(())
    }

    /// Runs the token that the host drew, if it has not been run.
    async fn run_drawn(&mut self, executable: &mut dyn Executable, cache: &mut TokenCache) -> Result<()> {
        if let Some(token) = self.not_run {
            executable.forward(&[token], cache.tokens().len()).await?;
            cache.extend(&[token]);
            self.not_run = None;
        }
        Ok(())
    }

    /// What may follow the tokens so far; nothing under a constraint, which permits one token at a time.
    fn draft(&self) -> Vec<u32> {
        let Some(drafter) = self.drafter.as_ref().filter(|_| self.context.constraint.is_none()) else {
            return Vec::new();
        };
        let sequence: Vec<u32> = self.prompt.iter().chain(&self.tokens).copied().collect();
        // With what is drawn after a draft, there is one token more.
        drafter.draft(&sequence, self.limit - self.tokens.len() - 1)
    }

    /// Runs the token drawn last together with what may follow it, then draws from the logits after each, in order and
    /// with its own random number, for as long as the guess is what is drawn. So every token is the one that would have
    /// been drawn without guesses; what was run beyond them is not counted as held.
    async fn verify(
        &mut self,
        executable: &mut dyn Executable,
        cache: &mut TokenCache,
        token: u32,
        draft: &[u32],
    ) -> Result<()> {
        let tokens = [&[token], draft].concat();
        let mut logits = executable.score(&tokens, cache.tokens().len()).await?;
        self.check_logits(&logits, tokens.len())?;
        let mut accepted = 0;
        for row in logits.chunks_exact_mut(self.context.vocab_size) {
            let (drawn, logprobs) = self.sampler.sample(row, &self.history, None)?;
            self.not_run = Some(drawn);
            self.hold(drawn, logprobs);
            if draft.get(accepted) != Some(&drawn) || self.end_ids.contains(&drawn) {
                break;
            }
            accepted += 1;
        }
        cache.extend(tokens.get(..=accepted).unwrap_or(&tokens));
        if let Some(drafter) = &mut self.drafter {
            drafter.learn(draft.len(), accepted);
        }
        Ok(())
    }

    /// Notes a token drawn.
    fn hold(&mut self, token: u32, logprobs: Option<RawLogprobs>) {
        self.history.push(token);
        self.drawn.push_back((token, logprobs));
    }

    fn check_logits(&self, logits: &[f32], rows: usize) -> Result<()> {
        let (expected, found) = (rows * self.context.vocab_size, logits.len());
        if expected == found {
            return Ok(());
        }
        Err(Error::internal(format!("expected {expected} logits, found {found}")))
    }

    /// What may come next; a question is passed on as an event.
    fn permission(&mut self) -> Result<Permission> {
        let constraint = self.context.constraint.as_mut().filter(|_| !self.context.reader.is_thinking());
        let permission = constraint.map_or(Ok(Permission::Any), |constraint| constraint.permission())?;
        if let Permission::Ask(accepted) = &permission {
            self.events.push_back(Event::Mask { accepted: accepted.clone() });
        }
        Ok(permission)
    }

    /// Ends an answer that has as many tokens as it may; one that is complete ends by itself.
    fn end_at_limit(&mut self) -> Result<()> {
        match self.permission()? {
            Permission::Ask(_) => Ok(()),
            Permission::End => self.end(FinishReason::Stop),
            Permission::Any | Permission::Tokens(_) => self.end(self.limit_reason),
        }
    }

    fn check_drawn(&self, tokens: &[u32], steps: usize) -> Result<()> {
        if tokens.len() != steps {
            return Err(Error::internal(format!("expected {steps} drawn tokens, found {}", tokens.len())));
        }
        match tokens.iter().find(|&&token| token as usize >= self.context.vocab_size) {
            Some(token) => {
                let n = self.context.vocab_size;
                Err(Error::internal(format!(
                    "expected drawn tokens below {n}, found {token}: the model's output is broken"
                )))
            }
            None => Ok(()),
        }
    }

    /// Adds a drawn token to the answer, or ends it there.
    fn take(&mut self, token: u32, logprobs: Option<RawLogprobs>) -> Result<()> {
        self.first_token_ms.get_or_insert_with(self.context.now_ms);
        if self.end_ids.contains(&token) {
            return self.end(FinishReason::Stop);
        }
        if let Some(constraint) = self.context.constraint.as_mut().filter(|_| !self.context.reader.is_thinking()) {
            constraint.accept(token)?;
        }
        self.tokens.push(token);
        if let (Some(list), Some(raw)) = (self.logprobs.as_mut(), logprobs) {
            let entry = with_text(&raw, self.context.pieces.as_ref());
            list.push(entry.clone());
            self.events.push_back(Event::Logprob(entry));
        }
        let piece = self.context.pieces.push(token)?;
        let parts = self.context.reader.push(&piece);
        if self.give(parts) {
            self.end_with(FinishReason::Stop);
        }
        Ok(())
    }

    /// Gives out what is certain once these parts came; true when that completed a stop string.
    fn give(&mut self, parts: Vec<AnswerPart>) -> bool {
        for part in parts {
            match part {
                AnswerPart::Text(text) => {
                    let checked = self.stop.push(&text);
                    self.tell(checked.text);
                    if checked.stopped {
                        return true;
                    }
                }
                AnswerPart::Thought(thought) => {
                    self.thoughts.push_str(&thought);
                    self.events.push_back(Event::Thought(thought));
                }
                AnswerPart::Call(delta) => self.events.push_back(Event::ToolCall(delta)),
            }
        }
        false
    }

    fn tell(&mut self, piece: String) {
        if !piece.is_empty() {
            self.text.push_str(&piece);
            self.events.push_back(Event::Piece(piece));
        }
    }

    /// Ends the answer with the text still held back, where half a character may come out or a stop string complete.
    fn end(&mut self, reason: FinishReason) -> Result<()> {
        // Who calls off wants no more; half a character is no text.
        let tail = if reason == FinishReason::Abort { String::new() } else { self.context.pieces.finish() };
        let mut parts = self.context.reader.push(&tail);
        parts.extend(self.context.reader.finish());
        let reason = if self.give(parts) { FinishReason::Stop } else { reason };
        let held = self.stop.finish();
        self.tell(held);
        self.end_with(reason);
        Ok(())
    }

    fn end_with(&mut self, finish_reason: FinishReason) {
        self.phase = Phase::Ended;
        self.drawn.clear();
        let calls = self.context.reader.calls();
        let is_call = finish_reason == FinishReason::Stop && self.context.reader.has_whole_calls();
        let result = GenerateResult {
            text: std::mem::take(&mut self.text),
            reasoning: Some(std::mem::take(&mut self.thoughts)).filter(|thoughts| !thoughts.is_empty()),
            tool_calls: Some(calls).filter(|calls| !calls.is_empty()),
            finish_reason: if is_call { FinishReason::ToolCalls } else { finish_reason },
            usage: Usage {
                prompt_tokens: self.prompt.len(),
                completion_tokens: self.tokens.len(),
                cached_tokens: self.cached,
            },
            stats: self.stats(),
            tokens: std::mem::take(&mut self.tokens),
            logprobs: self.logprobs.take(),
        };
        self.events.push_back(Event::Done(Box::new(result)));
    }

    /// A device may still run the prompt when it has taken the last chunk, so the prompt's time ends with the first
    /// token, and the rate of decoding is that of the tokens after it.
    fn stats(&self) -> Stats {
        let now = (self.context.now_ms)();
        let started = self.started_ms.unwrap_or(now);
        let first_token = self.first_token_ms.unwrap_or(now);
        let (prompt_ms, decode_ms) = (first_token - started, now - first_token);
        let per_second = |count: usize, ms: f64| if ms > 0.0 { count as f64 * 1000.0 / ms } else { 0.0 };
        let n_run = if self.first_token_ms.is_some() { self.prompt.len() - self.cached } else { 0 };
        Stats {
            time_to_first_token_ms: prompt_ms,
            prompt_ms,
            decode_ms,
            prompt_tokens_per_second: per_second(n_run, prompt_ms),
            decode_tokens_per_second: per_second(self.tokens.len().saturating_sub(1), decode_ms),
            backend: self.context.backend.clone(),
            threads: self.context.threads,
            drafted_tokens: self.drafter.as_ref().map(|drafter| drafter.counts().0),
            accepted_tokens: self.drafter.as_ref().map(|drafter| drafter.counts().1),
            kernels: None,
        }
    }
}

fn check_bias(logit_bias: &[(u32, f32)], vocab_size: usize) -> Result<()> {
    match logit_bias.iter().find(|&&(id, _)| id as usize >= vocab_size) {
        Some((id, _)) => {
            Err(Error::invalid_argument(format!("logitBias: expected token ids below {vocab_size}, found {id}")))
        }
        None => Ok(()),
    }
}

fn check_prompt(prompt: &[u32], max_tokens: Option<usize>, context: &GenerationContext) -> Result<()> {
    if prompt.is_empty() {
        return Err(Error::invalid_argument("prompt: expected at least one token, found none"));
    }
    let n = context.vocab_size;
    if let Some(id) = prompt.iter().find(|&&id| id as usize >= n) {
        return Err(Error::invalid_argument(format!("prompt: expected token ids below {n}, found {id}")));
    }
    let (found, capacity) = (prompt.len(), context.capacity);
    let needed = if max_tokens == Some(0) { found } else { found + 1 };
    if needed > capacity {
        return Err(Error::context_overflow(format!(
            "the prompt has {found} tokens, the context window holds {capacity}: expected at most {} with room for an answer",
            capacity.saturating_sub(1)
        )));
    }
    Ok(())
}

/// How many tokens to draw in the next step when one took `token_ms`: at most twice as many as now.
fn next_steps(n_steps: usize, token_ms: f64) -> usize {
    let fitting = if token_ms > 0.0 { (STEP_MS / token_ms) as usize } else { MOST_STEPS };
    fitting.clamp(1, (n_steps * 2).min(MOST_STEPS))
}

fn with_text(raw: &RawLogprobs, pieces: &dyn Pieces) -> TokenLogprob {
    let entry = |(id, logprob): (u32, f32)| {
        let bytes = pieces.bytes(id);
        TokenLogprob {
            id,
            token: String::from_utf8_lossy(&bytes).into_owned(),
            bytes,
            logprob,
            top_logprobs: Vec::new(),
        }
    };
    TokenLogprob { top_logprobs: raw.top.iter().copied().map(entry).collect(), ..entry(raw.chosen) }
}
