//! What a caller may ask of a generation, and its validation. Knows no JSON (see `options_json`) and no model.

use super::grammar::Grammar;
use crate::error::{Error, Result};

/// The most alternatives that `top_logprobs` may ask for.
pub const MAX_TOP_LOGPROBS: u32 = 20;

/// The most tokens that `speculative` may ask for.
pub const MAX_DRAFT_TOKENS: u32 = 32;
/// Tokens guessed ahead where the caller names no number.
pub const DEFAULT_DRAFT_TOKENS: u32 = 15;

/// The user's choices for one generation; `None` takes the model file's value, else the default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerateOptions {
    /// The most tokens to produce; the room left in the context when `None`. 0 only runs the prompt.
    pub max_tokens: Option<u32>,
    /// 0 takes the most likely token; otherwise logits are divided by it. Default 0.8.
    pub temperature: Option<f32>,
    /// Candidates kept; 0 and -1 keep all. Default 40.
    pub top_k: Option<i64>,
    /// Least share of probability kept, 0 to 1. Default 0.95.
    pub top_p: Option<f32>,
    /// Candidates less likely than this share of the best are dropped, 0 to 1. Default 0.05.
    pub min_p: Option<f32>,
    /// Above 0; above 1 makes tokens of the prompt and of the answer less likely, once per distinct token. Default 1.
    pub repeat_penalty: Option<f32>,
    /// -2 to 2, taken off a token's logit for each time it is in the answer. Default 0.
    pub frequency_penalty: Option<f32>,
    /// -2 to 2, taken off a token's logit when it is in the answer. Default 0.
    pub presence_penalty: Option<f32>,
    /// The same seed, prompt and options give the same answer.
    pub seed: Option<u64>,
    /// Strings that end the answer, and are not part of it.
    pub stop: Vec<String>,
    /// Whether the log-probability of each token is wanted.
    pub logprobs: bool,
    /// How many alternatives to list with each token, 0 to 20; needs `logprobs`.
    pub top_logprobs: u32,
    /// Added to the logits of tokens, -100 to 100 each.
    pub logit_bias: Vec<(u32, f32)>,
    /// Tokens guessed ahead at most, 0 to [`MAX_DRAFT_TOKENS`]: what followed the same words before is run as one step,
    /// and kept as far as it is what would have been drawn. 0 guesses nothing.
    pub speculative: u32,
    /// A language that the whole answer must be in.
    pub response_format: Option<Grammar>,
    /// Goes on after end-of-turn tokens, for measurements.
    pub ignore_end: bool,
    /// Measures every kernel, which is slow; the answer must be read to its end.
    pub profile: bool,
}

/// What a model's file says about sampling.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplingDefaults {
    /// See [`GenerateOptions::temperature`].
    pub temperature: Option<f32>,
    /// See [`GenerateOptions::top_k`].
    pub top_k: Option<i64>,
    /// See [`GenerateOptions::top_p`].
    pub top_p: Option<f32>,
    /// See [`GenerateOptions::min_p`].
    pub min_p: Option<f32>,
    /// See [`GenerateOptions::repeat_penalty`].
    pub repeat_penalty: Option<f32>,
}

/// Validated choices with every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// See [`GenerateOptions::temperature`].
    pub temperature: f32,
    /// Candidates kept; `None` keeps all.
    pub top_k: Option<usize>,
    /// See [`GenerateOptions::top_p`].
    pub top_p: f32,
    /// See [`GenerateOptions::min_p`].
    pub min_p: f32,
    /// See [`GenerateOptions::repeat_penalty`].
    pub repeat_penalty: f32,
    /// See [`GenerateOptions::frequency_penalty`].
    pub frequency_penalty: f32,
    /// See [`GenerateOptions::presence_penalty`].
    pub presence_penalty: f32,
    /// Added to logits.
    pub logit_bias: Vec<(u32, f32)>,
    /// Alternatives to list with each token; `None` when no log-probabilities are wanted.
    pub logprobs: Option<usize>,
}

impl GenerateOptions {
    /// Checks every option and fills in what the file, or else the defaults, say. A value of the file that is out of
    /// its range counts as absent: nobody who calls can mend it.
    ///
    /// # Errors
    /// `invalid-argument` naming the option, its range and what was found.
    pub fn settings(&self, file: &SamplingDefaults) -> Result<Settings> {
        if let Some(empty) = self.stop.iter().position(String::is_empty) {
            return Err(Error::invalid_argument(format!(
                "stop: expected strings of one character or more, found an empty one at index {empty}"
            )));
        }
        if self.top_logprobs > MAX_TOP_LOGPROBS {
            return Err(out_of_range("topLogprobs", &format!("0 to {MAX_TOP_LOGPROBS}"), self.top_logprobs));
        }
        if self.speculative > MAX_DRAFT_TOKENS {
            let expected = format!("0 to {MAX_DRAFT_TOKENS}");
            return Err(out_of_range("speculative.maxTokens", &expected, self.speculative));
        }
        if self.top_logprobs > 0 && !self.logprobs {
            return Err(Error::invalid_argument("topLogprobs: expected logprobs to be true with it, found false"));
        }
        for &(id, bias) in &self.logit_bias {
            within(&format!("logitBias of token {id}"), bias, -100.0, 100.0)?;
        }
        let temperature = choose("temperature", self.temperature, file.temperature, 0.8, check_temperature)?;
        let top_k = choose("topK", self.top_k, file.top_k, 40, check_top_k)?;
        Ok(Settings {
            temperature,
            top_k: usize::try_from(top_k).ok().filter(|&top_k| top_k > 0),
            top_p: choose("topP", self.top_p, file.top_p, 0.95, check_share)?,
            min_p: choose("minP", self.min_p, file.min_p, 0.05, check_share)?,
            repeat_penalty: choose("repeatPenalty", self.repeat_penalty, file.repeat_penalty, 1.0, check_repeat)?,
            frequency_penalty: choose("frequencyPenalty", self.frequency_penalty, None, 0.0, check_penalty)?,
            presence_penalty: choose("presencePenalty", self.presence_penalty, None, 0.0, check_penalty)?,
            logit_bias: self.logit_bias.clone(),
            logprobs: self.logprobs.then_some(self.top_logprobs as usize),
        })
    }
}

fn choose<T: Copy>(
    name: &str,
    asked: Option<T>,
    file: Option<T>,
    default: T,
    check: fn(&str, T) -> Result<()>,
) -> Result<T> {
    match asked {
        Some(value) => check(name, value).map(|()| value),
        None => Ok(file.filter(|&value| check(name, value).is_ok()).unwrap_or(default)),
    }
}

fn check_temperature(name: &str, value: f32) -> Result<()> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(out_of_range(name, "a number from 0", value)) }
}

fn check_top_k(name: &str, value: i64) -> Result<()> {
    if value >= -1 { Ok(()) } else { Err(out_of_range(name, "a count, or 0 or -1 for all", value)) }
}

fn check_share(name: &str, value: f32) -> Result<()> {
    within(name, value, 0.0, 1.0)
}

fn check_repeat(name: &str, value: f32) -> Result<()> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(out_of_range(name, "a number above 0", value)) }
}

fn check_penalty(name: &str, value: f32) -> Result<()> {
    within(name, value, -2.0, 2.0)
}

fn within(name: &str, value: f32, least: f32, most: f32) -> Result<()> {
    // NaN is in no range.
    if (least..=most).contains(&value) { Ok(()) } else { Err(out_of_range(name, &format!("{least} to {most}"), value)) }
}

fn out_of_range(name: &str, expected: &str, found: impl std::fmt::Display) -> Error {
    Error::invalid_argument(format!("{name}: expected {expected}, found {found}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(options: GenerateOptions, name: &str) {
        let error = options.settings(&SamplingDefaults::default()).unwrap_err();
        assert_eq!(error.code(), "invalid-argument");
        assert!(error.message().starts_with(name), "{error}");
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let settings = GenerateOptions::default().settings(&SamplingDefaults::default()).unwrap();
        assert_eq!((settings.temperature, settings.top_k), (0.8, Some(40)));
        assert_eq!((settings.top_p, settings.min_p), (0.95, 0.05));
        assert_eq!((settings.repeat_penalty, settings.frequency_penalty, settings.presence_penalty), (1.0, 0.0, 0.0));
        assert_eq!(settings.logprobs, None);
    }

    #[test]
    fn the_file_is_asked_before_the_defaults_and_after_the_user() {
        let file = SamplingDefaults { temperature: Some(0.6), top_k: Some(-7), min_p: Some(0.1), ..Default::default() };
        let options = GenerateOptions { min_p: Some(0.0), ..Default::default() };
        let settings = options.settings(&file).unwrap();
        assert_eq!((settings.temperature, settings.top_k, settings.min_p), (0.6, Some(40), 0.0));
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let base = GenerateOptions::default;
        for temperature in [-0.1, f32::NAN, f32::INFINITY] {
            refused(GenerateOptions { temperature: Some(temperature), ..base() }, "temperature");
        }
        for repeat_penalty in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            refused(GenerateOptions { repeat_penalty: Some(repeat_penalty), ..base() }, "repeatPenalty");
        }
        for share in [-0.01, 1.01, f32::NAN] {
            refused(GenerateOptions { top_p: Some(share), ..base() }, "topP");
            refused(GenerateOptions { min_p: Some(share), ..base() }, "minP");
        }
        refused(GenerateOptions { top_k: Some(-2), ..base() }, "topK");
        refused(GenerateOptions { frequency_penalty: Some(2.5), ..base() }, "frequencyPenalty");
        refused(GenerateOptions { presence_penalty: Some(f32::NAN), ..base() }, "presencePenalty");
        refused(GenerateOptions { logit_bias: vec![(3, 101.0)], ..base() }, "logitBias of token 3");
        refused(GenerateOptions { stop: vec!["a".into(), String::new()], ..base() }, "stop");
        refused(GenerateOptions { top_logprobs: 21, logprobs: true, ..base() }, "topLogprobs");
        refused(GenerateOptions { top_logprobs: 1, ..base() }, "topLogprobs");
        refused(GenerateOptions { speculative: 33, ..base() }, "speculative.maxTokens");
    }

    #[test]
    fn top_k_of_zero_or_minus_one_is_off() {
        for (top_k, expected) in [(0, None), (-1, None), (1, Some(1)), (1_000_000_000, Some(1_000_000_000))] {
            let options = GenerateOptions { top_k: Some(top_k), ..Default::default() };
            assert_eq!(options.settings(&SamplingDefaults::default()).unwrap().top_k, expected);
        }
    }
}
