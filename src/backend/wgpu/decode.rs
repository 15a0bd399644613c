//! Drawing tokens on the device: several a submit, and one more begun before it is asked for, so that the device does not
//! wait while the host looks at those it was given (0.5 ms a call; docs/performance.md).

use super::model::{Model, not_ready};
use super::program::DRAWN;
use super::state::State;
use crate::backend::{DeviceSampling, Steps};
use crate::error::{Error, Result};

/// Tokens drawn between two readbacks at most: their ids, and that of a token begun, are kept until they are read.
const STEPS: usize = DRAWN / 2;
/// Tokens drawn in one submit at most.
const SUBMIT_STEPS: usize = 4;

/// How far drawing has come on the device.
#[derive(Default)]
pub struct Drawing {
    /// Tokens drawn, and given to the host, since the state was written.
    drawn: usize,
    /// A token that the device draws and runs already: where, and how it is drawn.
    begun: Option<(usize, DeviceSampling)>,
    /// The last token given to the host and its position, while the logits held are not those after it but those after one
    /// that was begun.
    passed: Option<(u32, usize)>,
}

impl Drawing {
    /// The state or the caches become something else: what was begun is not gone on with.
    pub fn stop(&mut self) {
        self.begun = None;
    }

    /// The logits held are those that should be, or those of no token.
    pub fn settle(&mut self) {
        *self = Self::default();
    }

    /// Goes on with the token to be drawn at `position`, if it was begun.
    fn go_on(&mut self, position: usize, sampling: DeviceSampling) -> bool {
        let fits = self.begun.take() == Some((position, sampling));
        if fits {
            self.passed = None;
        }
        fits
    }

    /// The next `count` of the ids in the ring.
    fn take(&mut self, ring: &[u32], count: usize) -> Result<Vec<u32>> {
        let ids =
            (self.drawn..self.drawn + count).map(|at| ring.get(at % DRAWN).copied()).collect::<Option<Vec<u32>>>();
        self.drawn = (self.drawn + count) % DRAWN;
        ids.ok_or_else(|| Error::internal("the device gave too few tokens"))
    }
}

impl Model {
    /// Makes the logits held those after the last token that the host was given.
    pub(super) async fn hold_logits(&mut self) -> Result<()> {
        match self.drawing.passed {
            Some((token, position)) => self.run_forward(&[token], position).await,
            None => Ok(()),
        }
    }

    pub(super) async fn run_decode(
        &mut self,
        position: usize,
        steps: Steps,
        mut sampling: DeviceSampling,
    ) -> Result<Vec<u32>> {
        self.check_range(position, steps.now)?;
        let mut tokens = Vec::with_capacity(steps.now);
        while tokens.len() < steps.now {
            let (at, rest) = (position + tokens.len(), steps.now - tokens.len());
            let count = rest.min(STEPS);
            let begun = self.drawing.go_on(at, sampling);
            if !begun {
                self.hold_logits().await?;
                self.gpu.write(&self.shared.state, 0, State::decode(at, sampling).words());
                self.drawing.drawn = 0;
            }
            let greedy = sampling.temperature <= 0.0 || sampling.top_k == 1;
            self.draw(usize::from(begun), count, greedy).await?;
            // Where a call asks for one token, a token takes longer than what the host does between two.
            let wanted = rest > count || steps.more && count > 1;
            let more = wanted && at + count < self.shared.target.capacity && self.profile.is_none();
            let read = self.gpu.begin_read(&self.shared.drawn, DRAWN)?;
            if more {
                self.submit_draws(1, greedy)?;
            }
            let ring = self.gpu.finish_read(read).await?;
            tokens.extend(self.drawing.take(&ring, count)?);
            sampling.counter = sampling.counter.wrapping_add(count as u32);
            if more && let Some(&last) = tokens.last() {
                self.drawing.begun = Some((at + count, sampling));
                self.drawing.passed = Some((last, at + count - 1));
            }
        }
        Ok(tokens)
    }

    /// Draws `count` tokens and runs each, but for the `done` first, which are submitted. The device works on the first while
    /// the host still records the others; where recording is the slower of the two, only the last submit is waited for, so
    /// that it is short.
    async fn draw(&mut self, mut done: usize, count: usize, greedy: bool) -> Result<()> {
        let ready = self.ready.as_ref().ok_or_else(not_ready)?;
        let (sampler, step) = ready.decoding(greedy)?;
        if let Some(profile) = &mut self.profile {
            for _ in 0..count {
                profile.run_once(&mut self.gpu, sampler).await?;
                profile.run_step(&mut self.gpu, step).await?;
            }
            return Ok(());
        }
        if done == 0 {
            // The device has nothing to do before the first submit.
            for part in sampler.parts().chain(step.parts()) {
                part.submit(&mut self.gpu)?;
            }
            done = 1;
        }
        while done < count {
            let share = done.min(SUBMIT_STEPS).min(count - done);
            self.submit_draws(share, greedy)?;
            done += share;
        }
        Ok(())
    }

    /// Draws and runs `count` tokens in one submit.
    fn submit_draws(&mut self, count: usize, greedy: bool) -> Result<()> {
        let (sampler, step) = self.ready.as_ref().ok_or_else(not_ready)?.decoding(greedy)?;
        self.gpu.submit_pass(|pass| {
            for _ in 0..count {
                sampler.record(pass);
                step.record(pass);
            }
        })
    }
}
