//! Chooses the next token from logits: bias, penalties, top-k, top-p, min-p, temperature, draw — in this order, and by
//! the rule of [`crate::backend::sampling`], so that a device that draws for itself draws the same. Knows no text.

use std::collections::{BTreeMap, BTreeSet};

use super::constraint::TokenMask;
use super::logprobs::{LogSoftmax, RawLogprobs};
use super::options::Settings;
use crate::backend::{DEVICE_TOP_K, DeviceSampling, sampling, uniform};
use crate::error::{Error, Result};

/// Tokens so far, as the penalties count them: the repeat penalty looks at prompt and answer, once per distinct token;
/// the frequency and presence penalties look at the answer only.
#[derive(Debug, Clone, Default)]
pub struct History {
    seen: BTreeSet<u32>,
    answer: BTreeMap<u32, u32>,
}

impl History {
    /// The history before the first token of an answer.
    #[must_use]
    pub fn new(prompt: &[u32]) -> Self {
        Self { seen: prompt.iter().copied().collect(), answer: BTreeMap::new() }
    }

    /// Counts a token of the answer.
    pub fn push(&mut self, token: u32) {
        self.seen.insert(token);
        *self.answer.entry(token).or_default() += 1;
    }
}

/// The sampler chain of one generation.
#[derive(Debug, Clone)]
pub struct Sampler {
    settings: Settings,
    seed: u32,
    /// Draws so far: the number of the next one.
    counter: u32,
}

impl Sampler {
    /// A chain with its seed; the first draw has number 0.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self { settings, seed: (seed ^ (seed >> 32)) as u32, counter: 0 }
    }

    /// How a device draws the next tokens; `None` when only the host can.
    #[must_use]
    pub fn device_sampling(&self) -> Option<DeviceSampling> {
        let settings = &self.settings;
        let edits_logits = settings.repeat_penalty != 1.0
            || settings.frequency_penalty != 0.0
            || settings.presence_penalty != 0.0
            || !settings.logit_bias.is_empty();
        let top_k = if settings.temperature == 0.0 { Some(1) } else { settings.top_k };
        let top_k = top_k.and_then(|top_k| u32::try_from(top_k).ok()).filter(|&top_k| top_k <= DEVICE_TOP_K);
        if edits_logits || settings.logprobs.is_some() {
            return None;
        }
        Some(DeviceSampling {
            temperature: settings.temperature,
            top_k: top_k?,
            top_p: settings.top_p,
            min_p: settings.min_p,
            seed: self.seed,
            counter: self.counter,
        })
    }

    /// Notes that a device made `draws` draws.
    pub fn advance(&mut self, draws: u32) {
        self.counter = self.counter.wrapping_add(draws);
    }

    /// Draws from `logits` `[vocab_size]`, which it edits, a token that `mask` allows. With log-probabilities wanted, also those of the chosen
    /// token and its alternatives, from the logits as they came.
    ///
    /// # Errors
    /// `internal` when no logit is a number above minus infinity.
    pub fn sample(
        &mut self,
        logits: &mut [f32],
        history: &History,
        mask: Option<&TokenMask>,
    ) -> Result<(u32, Option<RawLogprobs>)> {
        let raw = self.settings.logprobs.map(|n_top| LogSoftmax::new(logits, n_top));
        let raw_logits = raw.is_some().then(|| logits.to_vec());
        if let Some(mask) = mask {
            mask.apply(logits);
        }
        self.edit(logits, history);
        let token = self.choose(logits)?;
        self.advance(1);
        let chosen = raw_logits.and_then(|logits| logits.get(token as usize).copied());
        Ok((token, raw.zip(chosen).map(|(raw, chosen)| raw.of(token, chosen))))
    }

    /// Bias and penalties. Ids outside the vocabulary are none of its business.
    fn edit(&self, logits: &mut [f32], history: &History) {
        let settings = &self.settings;
        for &(id, bias) in &settings.logit_bias {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit += bias;
            }
        }
        if settings.repeat_penalty != 1.0 {
            for &id in &history.seen {
                if let Some(logit) = logits.get_mut(id as usize) {
                    *logit =
                        if *logit > 0.0 { *logit / settings.repeat_penalty } else { *logit * settings.repeat_penalty };
                }
            }
        }
        if settings.frequency_penalty != 0.0 || settings.presence_penalty != 0.0 {
            for (&id, &count) in &history.answer {
                if let Some(logit) = logits.get_mut(id as usize) {
                    *logit -= count as f32 * settings.frequency_penalty + settings.presence_penalty;
                }
            }
        }
    }

    fn choose(&self, logits: &[f32]) -> Result<u32> {
        let settings = &self.settings;
        let candidates = match settings.top_k {
            _ if settings.temperature == 0.0 => sampling::top(logits, 1),
            Some(top_k) if top_k <= DEVICE_TOP_K as usize => sampling::top(logits, top_k),
            _ => self.many_candidates(logits),
        };
        let sorted: Vec<f32> = candidates.iter().map(|&(_, logit)| logit).collect();
        // What `many_candidates` returns has passed top-p already.
        let few = settings.top_k.is_some_and(|top_k| top_k <= DEVICE_TOP_K as usize);
        let sampling = DeviceSampling {
            temperature: settings.temperature,
            top_k: DEVICE_TOP_K,
            top_p: if few { settings.top_p } else { 1.0 },
            min_p: settings.min_p,
            seed: self.seed,
            counter: self.counter,
        };
        let index = sampling::draw(&sorted, &sampling, uniform(self.seed, self.counter));
        let token = candidates.get(index).map(|&(id, _)| id);
        token.ok_or_else(|| Error::internal("expected a finite logit, found none: the model's output is broken"))
    }

    /// The candidates that pass top-k, min-p and top-p, from the most likely down. Sorts no more of the vocabulary
    /// than these: what min-p drops is dropped first (it is the tail, so top-p's prefix is the same), and top-p sorts
    /// the rest in growing prefixes.
    fn many_candidates(&self, logits: &[f32]) -> Vec<(u32, f32)> {
        let usable = |(id, &logit): (u32, &f32)| (logit > f32::NEG_INFINITY).then_some((id, logit.min(f32::MAX)));
        let mut candidates: Vec<(u32, f32)> = (0u32..).zip(logits).filter_map(usable).collect();
        if let Some(top_k) = self.settings.top_k.filter(|&top_k| top_k < candidates.len()) {
            candidates.select_nth_unstable_by(top_k, descending);
            candidates.truncate(top_k);
        }
        let best = candidates.iter().map(|&(_, logit)| logit).fold(f32::NEG_INFINITY, f32::max);
        let total: f64 = candidates.iter().map(|&(_, logit)| share(logit, best)).sum();
        candidates.retain(|&(_, logit)| (logit - best).exp() >= self.settings.min_p);
        if self.settings.top_p < 1.0 {
            keep_share(&mut candidates, best, f64::from(self.settings.top_p) * total);
        } else {
            candidates.sort_unstable_by(descending);
        }
        candidates
    }
}

fn share(logit: f32, best: f32) -> f64 {
    f64::from(logit - best).exp()
}

/// From the highest logit down, the lower id first among equals.
fn descending(a: &(u32, f32), b: &(u32, f32)) -> std::cmp::Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

/// Keeps the shortest sorted prefix whose shares reach `enough`, at least one.
fn keep_share(candidates: &mut Vec<(u32, f32)>, best: f32, enough: f64) {
    let (mut sorted, mut sum) = (0, 0.0);
    let mut width = 256;
    while sorted < candidates.len() {
        let rest = candidates.get_mut(sorted..).unwrap_or_default();
        let width_now = width.min(rest.len());
        if width_now < rest.len() {
            rest.select_nth_unstable_by(width_now, descending);
        }
        let part = rest.get_mut(..width_now).unwrap_or_default();
        part.sort_unstable_by(descending);
        for &(_, logit) in part.iter() {
            sorted += 1;
            sum += share(logit, best);
            if sum >= enough {
                candidates.truncate(sorted);
                return;
            }
        }
        width *= 4;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::options::{GenerateOptions, SamplingDefaults};
    use super::*;

    fn neutral() -> GenerateOptions {
        GenerateOptions {
            temperature: Some(1.0),
            top_k: Some(0),
            top_p: Some(1.0),
            min_p: Some(0.0),
            ..Default::default()
        }
    }

    fn sampler(options: &GenerateOptions) -> Sampler {
        Sampler::new(options.settings(&SamplingDefaults::default()).unwrap(), options.seed.unwrap_or(1))
    }

    /// The ids drawn in 1000 draws from `logits`.
    fn drawn(options: &GenerateOptions, logits: &[f32]) -> Vec<u32> {
        let mut sampler = sampler(options);
        let draw = |_| sampler.sample(&mut logits.to_vec(), &History::default(), None).unwrap().0;
        (0..1000).map(draw).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    fn edited(options: GenerateOptions, history: &History, logits: &[f32]) -> Vec<f32> {
        let mut logits = logits.to_vec();
        sampler(&options).edit(&mut logits, history);
        logits
    }

    #[test]
    fn top_k_of_zero_minus_one_or_a_billion_is_off() {
        for top_k in [0, -1, 1_000_000_000, 64, 4] {
            assert_eq!(drawn(&GenerateOptions { top_k: Some(top_k), ..neutral() }, &[1.0; 4]), [0, 1, 2, 3], "{top_k}");
        }
        assert_eq!(drawn(&GenerateOptions { top_k: Some(1), ..neutral() }, &[1.0; 4]), [0]);
        assert_eq!(drawn(&GenerateOptions { top_k: Some(2), ..neutral() }, &[1.0; 4]), [0, 1]);
    }

    #[test]
    fn top_p_and_min_p_keep_at_least_the_best() {
        let logits = [0.0, 2.0, 1.0, 1.9];
        for top_k in [0, 40] {
            let base = GenerateOptions { top_k: Some(top_k), ..neutral() };
            assert_eq!(drawn(&GenerateOptions { top_p: Some(0.0), ..base.clone() }, &logits), [1]);
            assert_eq!(drawn(&GenerateOptions { top_p: Some(0.5), ..base.clone() }, &logits), [1, 3]);
            assert_eq!(drawn(&GenerateOptions { min_p: Some(1.0), ..base.clone() }, &logits), [1]);
            assert_eq!(drawn(&GenerateOptions { min_p: Some(0.5), ..base.clone() }, &logits), [1, 3]);
            assert_eq!(drawn(&base, &logits), [0, 1, 2, 3]);
        }
    }

    #[test]
    fn repeat_penalty_divides_positives_multiplies_negatives_once_per_token() {
        let history = History::new(&[0, 0, 1, 7_000_000]);
        let options = |repeat_penalty| GenerateOptions { repeat_penalty: Some(repeat_penalty), ..neutral() };
        assert_eq!(edited(options(2.0), &history, &[2.0, -1.0, 0.5]), [1.0, -2.0, 0.5]);
        assert_eq!(edited(options(1.0), &history, &[2.0, -1.0, 0.5]), [2.0, -1.0, 0.5]);
    }

    #[test]
    fn frequency_counts_occurrences_and_presence_does_not() {
        let mut history = History::new(&[2, 2, 2]);
        [0, 0, 1].into_iter().for_each(|token| history.push(token));
        let frequency = GenerateOptions { frequency_penalty: Some(0.5), ..neutral() };
        assert_eq!(edited(frequency, &history, &[3.0; 3]), [2.0, 2.5, 3.0]);
        let presence = GenerateOptions { presence_penalty: Some(0.5), ..neutral() };
        assert_eq!(edited(presence, &history, &[3.0; 3]), [2.5, 2.5, 3.0]);
    }

    #[test]
    fn bias_changes_the_choice_and_ignores_foreign_ids() {
        let options = GenerateOptions { temperature: Some(0.0), logit_bias: vec![(0, -100.0), (99, 5.0)], ..neutral() };
        assert_eq!(sampler(&options).sample(&mut [9.0, 1.0, 2.0], &History::default(), None).unwrap().0, 2);
    }

    #[test]
    fn the_lowest_id_wins_among_equals() {
        let options = GenerateOptions { temperature: Some(0.0), ..neutral() };
        assert_eq!(sampler(&options).sample(&mut [1.0, 5.0, 5.0], &History::default(), None).unwrap().0, 1);
    }

    #[test]
    fn broken_logits_are_skipped_and_only_broken_ones_are_an_error() {
        for (temperature, top_k) in [(0.0, 0), (1.0, 0), (1.0, 40), (1.0, 1000)] {
            let options = GenerateOptions { temperature: Some(temperature), top_k: Some(top_k), ..neutral() };
            let draw = |logits: &[f32]| sampler(&options).sample(&mut logits.to_vec(), &History::default(), None);
            assert_eq!(draw(&[f32::NAN, 1.0, f32::NEG_INFINITY]).unwrap().0, 1);
            assert_eq!(draw(&[f32::NAN, 1.0, f32::INFINITY]).unwrap().0, 2);
            for broken in [&[f32::NAN; 3][..], &[f32::NEG_INFINITY; 3], &[]] {
                assert_eq!(draw(broken).unwrap_err().code(), "internal");
            }
        }
    }

    #[test]
    fn large_vocabularies_keep_the_right_prefix() {
        // Shares fall by 0.1 % a token, from a shuffled order; the exact prefix is known.
        let n: u32 = 40_000;
        let logits: Vec<f32> = (0..n).map(|id| -0.001 * ((id * 7919) % n) as f32).collect();
        let sampler = sampler(&GenerateOptions { top_p: Some(0.5), ..neutral() });
        let kept = sampler.many_candidates(&logits);
        let rank = |id: u32| (id * 7919) % n;
        assert!(kept.iter().enumerate().all(|(index, &(id, _))| rank(id) as usize == index));
        // 1 - exp(-0.001 k) reaches one half at k = 693.1...
        assert_eq!(kept.len(), 694);
    }

    #[test]
    fn a_device_draws_what_the_host_draws() {
        let logits: Vec<f32> = (0..500u32).map(|id| ((id * 193) % 500) as f32 * 0.013).collect();
        for seed in 0..50 {
            let mut host = sampler(&GenerateOptions { seed: Some(seed), ..GenerateOptions::default() });
            let device = host.device_sampling().unwrap();
            let tokens: Vec<u32> =
                (0..8).map(|_| host.sample(&mut logits.clone(), &History::default(), None).unwrap().0).collect();
            let drawn: Vec<u32> =
                (0..8).filter_map(|step| sampling::draw_from_vocabulary(&logits, &device, step)).collect();
            assert_eq!(tokens, drawn);
            assert_eq!(host.device_sampling().unwrap().counter, 8);
        }
    }

    #[test]
    fn only_what_a_device_can_do_is_given_to_it() {
        let default = GenerateOptions::default;
        assert!(sampler(&default()).device_sampling().is_some());
        assert!(
            sampler(&GenerateOptions { temperature: Some(0.0), top_k: Some(0), ..default() })
                .device_sampling()
                .is_some()
        );
        for options in [
            GenerateOptions { top_k: Some(0), ..default() },
            GenerateOptions { top_k: Some(65), ..default() },
            GenerateOptions { repeat_penalty: Some(1.1), ..default() },
            GenerateOptions { frequency_penalty: Some(0.1), ..default() },
            GenerateOptions { presence_penalty: Some(0.1), ..default() },
            GenerateOptions { logit_bias: vec![(1, 1.0)], ..default() },
            GenerateOptions { logprobs: true, ..default() },
        ] {
            assert!(sampler(&options).device_sampling().is_none(), "{options:?}");
        }
    }
}
