//! [`GenerateOptions`] from JSON with the names of the JS API. Errors name the option, what it should be and what was
//! found. Ranges are checked later, in `options`.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::{Map, Value};

use super::grammar::Grammar;
use super::options::{DEFAULT_DRAFT_TOKENS, GenerateOptions};
use crate::error::{Error, Result};

/// Every option that JSON may hold.
const NAMES: &[&str] = &[
    "maxTokens",
    "temperature",
    "topK",
    "topP",
    "minP",
    "repeatPenalty",
    "frequencyPenalty",
    "presencePenalty",
    "seed",
    "stop",
    "logprobs",
    "topLogprobs",
    "logitBias",
    "speculative",
    "responseFormat",
    "profile",
];

impl GenerateOptions {
    /// The options in a JSON object; `null` counts as absent.
    ///
    /// # Errors
    /// `invalid-argument` naming an option that is unknown or of the wrong type.
    pub fn from_json(value: &Value) -> Result<Self> {
        let Value::Object(map) = value else {
            return if value.is_null() { Ok(Self::default()) } else { Err(wrong("options", "an object", value)) };
        };
        let mut map = map.clone();
        let options = Self::take_from(&mut map)?;
        match map.keys().next() {
            Some(unknown) => {
                Err(Error::invalid_argument(format!("unknown option {unknown:?}; known: {}", NAMES.join(", "))))
            }
            None => Ok(options),
        }
    }

    /// Takes the options out of `map` and leaves there what is none, for a caller with options of its own.
    ///
    /// # Errors
    /// `invalid-argument` naming an option of the wrong type.
    pub fn take_from(map: &mut Map<String, Value>) -> Result<Self> {
        let mut take = |name: &'static str| (name, map.shift_remove(name).filter(|value| !value.is_null()));
        Ok(Self {
            max_tokens: integer(take("maxTokens"))?.map(|(name, count)| max_tokens(name, count)).transpose()?,
            temperature: number(take("temperature"))?,
            top_k: integer(take("topK"))?.map(|(_, count)| saturated(count)),
            top_p: number(take("topP"))?,
            min_p: number(take("minP"))?,
            repeat_penalty: number(take("repeatPenalty"))?,
            frequency_penalty: number(take("frequencyPenalty"))?,
            presence_penalty: number(take("presencePenalty"))?,
            seed: integer(take("seed"))?.map(|(name, seed)| seed_of(name, seed)).transpose()?,
            stop: stop(take("stop"))?,
            logprobs: boolean(take("logprobs"))?,
            top_logprobs: integer(take("topLogprobs"))?
                .map(|(name, count)| count_of(name, count))
                .transpose()?
                .unwrap_or(0),
            logit_bias: logit_bias(take("logitBias"))?,
            speculative: speculative(take("speculative"))?,
            response_format: response_format(take("responseFormat"))?,
            ignore_end: false,
            profile: boolean(take("profile"))?,
        })
    }
}

impl<'de> Deserialize<'de> for GenerateOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_json(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

type Taken = (&'static str, Option<Value>);

fn wrong(name: &str, expected: &str, found: &Value) -> Error {
    let text = found.to_string();
    let shown: String = text.chars().take(40).collect();
    Error::invalid_argument(format!("{name}: expected {expected}, found {shown}"))
}

fn number((name, value): Taken) -> Result<Option<f32>> {
    let Some(value) = value else { return Ok(None) };
    value.as_f64().map(|number| Some(number as f32)).ok_or_else(|| wrong(name, "a number", &value))
}

/// An integer, also one that JavaScript's numbers wrote with a fraction of zero or an exponent.
fn integer((name, value): Taken) -> Result<Option<(&'static str, i128)>> {
    let Some(value) = value else { return Ok(None) };
    let whole = value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i128);
    let exact = value.as_u64().map(i128::from).or(value.as_i64().map(i128::from)).or(whole);
    exact.map(|count| Some((name, count))).ok_or_else(|| wrong(name, "an integer", &value))
}

fn saturated(count: i128) -> i64 {
    i64::try_from(count).unwrap_or(if count < 0 { i64::MIN } else { i64::MAX })
}

/// A limit above what any context holds is as good as none.
fn max_tokens(name: &str, count: i128) -> Result<u32> {
    u32::try_from(count.min(i128::from(u32::MAX)))
        .map_err(|_| Error::invalid_argument(format!("{name}: expected an integer from 0, found {count}")))
}

fn seed_of(name: &str, seed: i128) -> Result<u64> {
    u64::try_from(seed)
        .map_err(|_| Error::invalid_argument(format!("{name}: expected an integer from 0 to 2^64 - 1, found {seed}")))
}

fn count_of(name: &str, count: i128) -> Result<u32> {
    u32::try_from(count)
        .map_err(|_| Error::invalid_argument(format!("{name}: expected an integer from 0, found {count}")))
}

fn boolean((name, value): Taken) -> Result<bool> {
    let Some(value) = value else { return Ok(false) };
    value.as_bool().ok_or_else(|| wrong(name, "true or false", &value))
}

/// `true`, or an object that says how many tokens are guessed ahead.
fn speculative((name, value): Taken) -> Result<u32> {
    match value {
        None | Some(Value::Bool(false)) => Ok(0),
        Some(Value::Bool(true)) => Ok(DEFAULT_DRAFT_TOKENS),
        Some(Value::Object(mut map)) => {
            let most = map.shift_remove("maxTokens").filter(|most| !most.is_null());
            if let Some(unknown) = map.keys().next() {
                return Err(Error::invalid_argument(format!("{name}: expected maxTokens alone, found {unknown:?}")));
            }
            let most = integer(("speculative.maxTokens", most))?;
            most.map_or(Ok(DEFAULT_DRAFT_TOKENS), |(name, count)| count_of(name, count))
        }
        Some(other) => Err(wrong(name, "true, false or { maxTokens }", &other)),
    }
}

fn stop((name, value): Taken) -> Result<Vec<String>> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(list)) => {
            let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| wrong(name, "strings", value));
            list.iter().map(text).collect()
        }
        Some(other) => Err(wrong(name, "a string or a list of strings", &other)),
    }
}

fn logit_bias((name, value): Taken) -> Result<Vec<(u32, f32)>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let Value::Object(map) = &value else { return Err(wrong(name, "an object from token ids to numbers", &value)) };
    let row = |(key, bias): (&String, &Value)| {
        let id =
            key.parse().map_err(|_| Error::invalid_argument(format!("{name}: expected a token id, found {key:?}")))?;
        let bias = bias.as_f64().ok_or_else(|| wrong(name, "numbers", bias))?;
        Ok((id, bias as f32))
    };
    map.iter().map(row).collect()
}

fn response_format((_, value): Taken) -> Result<Option<Grammar>> {
    value.map_or(Ok(None), |value| Grammar::from_response_format(&value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn every_option_is_read() {
        let value = json!({
            "maxTokens": 12, "temperature": 0.5, "topK": 3, "topP": 0.9, "minP": 0.1, "repeatPenalty": 1.1,
            "frequencyPenalty": 0.5, "presencePenalty": -0.5, "seed": 42, "stop": ["a", "b"], "logprobs": true,
            "topLogprobs": 2, "logitBias": {"7": -100}, "speculative": {"maxTokens": 5},
            "responseFormat": {"type": "regex", "regex": "a"}, "profile": true
        });
        let options = GenerateOptions::from_json(&value).unwrap();
        let expected = GenerateOptions {
            max_tokens: Some(12),
            temperature: Some(0.5),
            top_k: Some(3),
            top_p: Some(0.9),
            min_p: Some(0.1),
            repeat_penalty: Some(1.1),
            frequency_penalty: Some(0.5),
            presence_penalty: Some(-0.5),
            seed: Some(42),
            stop: vec!["a".into(), "b".into()],
            logprobs: true,
            top_logprobs: 2,
            logit_bias: vec![(7, -100.0)],
            speculative: 5,
            response_format: Some(Grammar::Regex("a".into())),
            ignore_end: false,
            profile: true,
        };
        assert_eq!(options, expected);
        assert_eq!(NAMES.len(), value.as_object().unwrap().len());
        assert_eq!(serde_json::from_value::<GenerateOptions>(value).unwrap(), expected);
    }

    #[test]
    fn limits_at_the_edges_are_read_or_refused() {
        let read =
            |value: Value| GenerateOptions::from_json(&json!({ "maxTokens": value })).map(|options| options.max_tokens);
        assert_eq!(read(json!(0)).unwrap(), Some(0));
        assert_eq!(read(json!(2_147_483_648u64)).unwrap(), Some(2_147_483_648));
        assert_eq!(read(json!(1e300)).unwrap(), Some(u32::MAX));
        assert_eq!(read(json!(3.0)).unwrap(), Some(3));
        assert_eq!(read(Value::Null).unwrap(), None);
        for wrong in [json!(-1), json!(-2), json!(1.5), json!("10"), json!([1])] {
            let error = read(wrong).unwrap_err();
            assert_eq!(error.code(), "invalid-argument");
            assert!(error.message().starts_with("maxTokens: expected an integer"), "{error}");
        }
    }

    #[test]
    fn a_huge_top_k_is_kept_as_huge() {
        let options = GenerateOptions::from_json(&json!({ "topK": 1e30 })).unwrap();
        assert_eq!(options.top_k, Some(i64::MAX));
    }

    #[test]
    fn stop_may_be_a_string_a_list_or_nothing() {
        let read = |value: Value| GenerateOptions::from_json(&json!({ "stop": value })).map(|options| options.stop);
        assert_eq!(read(json!("x")).unwrap(), ["x"]);
        assert!(read(json!([])).unwrap().is_empty());
        assert_eq!(read(json!(["a", "b", "c", "d", "e"])).unwrap().len(), 5);
        assert_eq!(read(json!(3)).unwrap_err().code(), "invalid-argument");
        assert_eq!(read(json!([3])).unwrap_err().code(), "invalid-argument");
    }

    #[test]
    fn speculation_is_off_on_or_of_a_length() {
        let read = |value: Value| {
            GenerateOptions::from_json(&json!({ "speculative": value })).map(|options| options.speculative)
        };
        let read_well = |value: Value| read(value).unwrap();
        assert_eq!([Value::Null, json!(false), json!({ "maxTokens": 0 })].map(read_well), [0; 3]);
        assert_eq!([json!(true), json!({}), json!({ "maxTokens": null })].map(read_well), [DEFAULT_DRAFT_TOKENS; 3]);
        for wrong in
            [json!(3), json!("x"), json!({ "maxTokens": -1 }), json!({ "maxTokens": 1.5 }), json!({ "most": 3 })]
        {
            let error = read(wrong).unwrap_err();
            assert!(error.message().starts_with("speculative"), "{error}");
        }
    }

    #[test]
    fn unknown_options_and_wrong_types_are_named() {
        let message = |value: Value| GenerateOptions::from_json(&value).unwrap_err().to_string();
        assert!(message(json!({ "max_tokens": 3 })).starts_with("unknown option \"max_tokens\""));
        assert!(message(json!({ "temperature": "hot" })).starts_with("temperature: expected a number, found \"hot\""));
        assert!(message(json!({ "seed": -1 })).starts_with("seed:"));
        assert!(message(json!({ "logitBias": {"x": 1} })).starts_with("logitBias: expected a token id"));
        assert!(message(json!([1])).starts_with("options: expected an object"));
    }

    #[test]
    fn options_of_others_are_left() {
        let mut map = json!({ "topK": 3, "tools": [] }).as_object().unwrap().clone();
        assert_eq!(GenerateOptions::take_from(&mut map).unwrap().top_k, Some(3));
        assert_eq!(map.keys().collect::<Vec<_>>(), ["tools"]);
    }
}
