//! Log-probabilities of tokens, from logits as the model gave them. Always finite, so that they survive JSON.

use serde::Serialize;

use crate::backend::sampling;

/// Stands for minus infinity.
pub const LOGPROB_FLOOR: f32 = -9999.0;

/// A token of an answer with its log-probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenLogprob {
    /// The token's id.
    pub id: u32,
    /// Its text, with replacement characters where it holds part of one.
    pub token: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability at temperature 1, before penalties; -9999 for an impossible one.
    pub logprob: f32,
    /// The most likely tokens at this place, the likeliest first; empty for an alternative itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub top_logprobs: Vec<TokenLogprob>,
}

/// Ids with log-probabilities, before they have text.
#[derive(Debug, Clone, PartialEq)]
pub struct RawLogprobs {
    /// The chosen token.
    pub chosen: (u32, f32),
    /// The most likely tokens, the likeliest first.
    pub top: Vec<(u32, f32)>,
}

/// The normalizer of one row of logits.
pub(crate) struct LogSoftmax {
    log_total: f64,
    top: Vec<(u32, f32)>,
}

impl LogSoftmax {
    /// Of `logits`, keeping the `n_top` most likely.
    pub(crate) fn new(logits: &[f32], n_top: usize) -> Self {
        let mut softmax = Self { log_total: log_total(logits), top: Vec::new() };
        let top = sampling::top(logits, n_top).into_iter();
        softmax.top = top.map(|(id, logit)| (id, softmax.logprob(logit))).collect();
        softmax
    }

    /// With the chosen token and its logit.
    pub(crate) fn of(self, token: u32, logit: f32) -> RawLogprobs {
        RawLogprobs { chosen: (token, self.logprob(logit)), top: self.top }
    }

    fn logprob(&self, logit: f32) -> f32 {
        finite(number(logit) - self.log_total)
    }
}

/// The log-probability of `token` under `logits` `[vocab_size]`; the floor for an id outside the vocabulary.
#[must_use]
pub fn log_softmax_of(logits: &[f32], token: u32) -> f32 {
    let logit = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
    finite(number(logit) - log_total(logits))
}

fn finite(logprob: f64) -> f32 {
    if logprob.is_nan() { LOGPROB_FLOOR } else { (logprob as f32).clamp(LOGPROB_FLOOR, 0.0) }
}

/// The logarithm of the sum of the exponentials.
fn log_total(logits: &[f32]) -> f64 {
    let best = logits.iter().map(|&logit| number(logit)).fold(f64::NEG_INFINITY, f64::max);
    best + logits.iter().map(|&logit| (number(logit) - best).exp()).sum::<f64>().ln()
}

/// A logit that sums can bear: what is no number is impossible, plus infinity is the largest number.
fn number(logit: f32) -> f64 {
    if logit.is_nan() { f64::NEG_INFINITY } else { f64::from(logit.min(f32::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_are_those_of_a_softmax() {
        let logits = [1.0f32, 2.0, 4.0];
        let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        for (id, &logit) in (0u32..).zip(&logits) {
            let expected = (f64::from(logit).exp() / total).ln() as f32;
            assert!((log_softmax_of(&logits, id) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn impossible_tokens_have_a_finite_floor() {
        let logits = [f32::NEG_INFINITY, 3.0, f32::NAN];
        assert_eq!(log_softmax_of(&logits, 0), LOGPROB_FLOOR);
        assert_eq!(log_softmax_of(&logits, 1), 0.0);
        assert_eq!(log_softmax_of(&logits, 2), LOGPROB_FLOOR);
        assert_eq!(log_softmax_of(&logits, 9), LOGPROB_FLOOR);
        assert_eq!(log_softmax_of(&[f32::NAN], 0), LOGPROB_FLOOR);
        assert_eq!(log_softmax_of(&[f32::INFINITY, 0.0], 1), LOGPROB_FLOOR);
    }

    #[test]
    fn the_most_likely_come_first() {
        let raw = LogSoftmax::new(&[1.0, 3.0, 2.0], 2).of(0, 1.0);
        assert_eq!(raw.top.iter().map(|&(id, _)| id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(raw.chosen, (0, log_softmax_of(&[1.0, 3.0, 2.0], 0)));
    }
}
