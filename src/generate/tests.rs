//! Tests of the step machine on a stub model, on the host and the device path.

#![allow(clippy::unwrap_used, clippy::panic)]

use futures::executor::block_on;

use super::options::{GenerateOptions, SamplingDefaults};
use super::stub::{Stub, VOCAB};
use super::*;
use crate::error::Result;
use crate::text::AnswerReader;

pub(super) const EOS: u32 = 15;
pub(super) const PROMPT: [u32; 3] = [11, 12, 13];

/// Gives token `i` the text `pieces[i]`, and the last one of half a character.
struct Spelled(Vec<&'static str>);

impl Pieces for Spelled {
    fn push(&mut self, id: u32) -> Result<String> {
        Ok(self.0.get(id as usize).copied().unwrap_or("").to_owned())
    }

    fn finish(&mut self) -> String {
        String::new()
    }

    fn bytes(&self, id: u32) -> Vec<u8> {
        self.0.get(id as usize).copied().unwrap_or("").as_bytes().to_vec()
    }
}

pub(super) fn context(pieces: &[&'static str], capacity: usize) -> GenerationContext {
    GenerationContext {
        vocab_size: VOCAB,
        capacity,
        end_ids: vec![EOS],
        defaults: SamplingDefaults::default(),
        pieces: Box::new(Spelled(pieces.to_vec())),
        reader: AnswerReader::default(),
        constraint: None,
        now_ms: || 1.0,
        random_seed: 5,
        backend: "stub".to_owned(),
        threads: None,
    }
}

pub(super) fn greedy() -> GenerateOptions {
    GenerateOptions { temperature: Some(0.0), ..GenerateOptions::default() }
}

/// Runs to the end; the pieces given out and the result.
fn run(stub: &mut Stub, cache: &mut TokenCache, generation: &mut Generation) -> Result<(Vec<String>, GenerateResult)> {
    let (mut pieces, mut logprobs) = (Vec::new(), Vec::new());
    loop {
        match block_on(generation.next(stub, cache))? {
            Some(Event::Piece(piece)) => pieces.push(piece),
            Some(Event::Done(result)) => {
                assert_eq!(block_on(generation.next(stub, cache))?, None);
                assert_eq!(cache.tokens(), stub.held, "the history is what the device holds");
                assert_eq!(pieces.concat(), result.text);
                assert_eq!(result.logprobs.as_deref().unwrap_or_default(), logprobs);
                return Ok((pieces, *result));
            }
            Some(Event::Prompt { .. }) => {}
            Some(Event::Logprob(entry)) => logprobs.push(entry),
            Some(event) => panic!("unexpected: {event:?}"),
            None => panic!("an end without a result"),
        }
    }
}

/// The answer to `script` with `options`, which must be the same on both paths.
fn answer(script: &[u32], pieces: &[&'static str], options: &GenerateOptions) -> (Vec<String>, GenerateResult) {
    let [host, device] = [false, true].map(|samples| {
        let mut stub = Stub { samples, ..Stub::saying(script, PROMPT.len()) };
        let mut generation = Generation::new(PROMPT.to_vec(), options, context(pieces, 64)).unwrap();
        run(&mut stub, &mut TokenCache::new(), &mut generation).unwrap()
    });
    assert_eq!(host.1, device.1);
    assert_eq!(host.0, device.0);
    host
}

#[test]
fn stop_strings_over_token_borders() {
    let rows: &[(&[&'static str], &[&str], &str)] = &[
        (&[" the", " planet", " Mars", "?\n"], &["?\n"], " the planet Mars"),
        (&[" the", " planet", " Mars", "?\n"], &["\n"], " the planet Mars?"),
        (&["L", " M", " N", " O", " P", " Q"], &["O P Q"], "L M N "),
        (&["UNO", " DUE", " TRE"], &["TRE\nAAAA"], "UNO DUE TRE"),
        (&["DEF", "G", "HI", "J"], &["DEFGHIJ"], ""),
        (&["aa", "ab"], &["aab"], "a"),
        (&[" Alice", "!"], &["\n", "Alice:"], " Alice!"),
    ];
    for (pieces, stops, text) in rows {
        let mut script: Vec<u32> = (0u32..).take(pieces.len()).collect();
        script.push(EOS);
        let options = GenerateOptions { stop: stops.iter().map(|&stop| stop.to_owned()).collect(), ..greedy() };
        let (given, result) = answer(&script, pieces, &options);
        assert_eq!((result.text.as_str(), result.finish_reason), (*text, FinishReason::Stop));
        assert!(!text.is_empty() || given.is_empty());
    }
}

#[test]
fn exactly_max_tokens_are_produced() {
    let script: Vec<u32> = vec![1, 2, 3, 4, 5, EOS];
    let cases = [
        (Some(0), 0, FinishReason::Length),
        (Some(1), 1, FinishReason::Length),
        (Some(2), 2, FinishReason::Length),
        (Some(3), 3, FinishReason::Length),
        (Some(5), 5, FinishReason::Length),
        (Some(6), 5, FinishReason::Stop),
        (Some(u32::MAX), 5, FinishReason::Stop),
        (None, 5, FinishReason::Stop),
    ];
    for (max_tokens, count, reason) in cases {
        let (_, result) = answer(&script, &["z", "a", "b", "c", "d", "e"], &GenerateOptions { max_tokens, ..greedy() });
        assert_eq!((result.tokens.len(), result.finish_reason), (count, reason), "{max_tokens:?}");
        assert_eq!(result.usage.completion_tokens, count);
        assert_eq!(result.text.len(), count);
    }
}

#[test]
fn an_end_token_at_once_is_a_stop() {
    for max_tokens in [Some(1), None] {
        let (_, result) = answer(&[EOS], &[], &GenerateOptions { max_tokens, ..greedy() });
        assert_eq!((result.text.as_str(), result.finish_reason), ("", FinishReason::Stop));
        assert_eq!(result.usage.completion_tokens, 0);
    }
}

#[test]
fn a_full_window_ends_the_answer() {
    for samples in [false, true] {
        for (len, max_tokens, expected) in [
            (62, Some(100), Some((2, FinishReason::Context))),
            (62, Some(1), Some((1, FinishReason::Length))),
            (62, Some(2), Some((2, FinishReason::Length))),
            (63, Some(100), Some((1, FinishReason::Context))),
            (63, None, Some((1, FinishReason::Context))),
            (64, Some(0), Some((0, FinishReason::Length))),
            (64, Some(1), None),
            (65, Some(0), None),
            (1_000_000, None, None),
        ] {
            let options = GenerateOptions { max_tokens, ..greedy() };
            let made = Generation::new(vec![1; len], &options, context(&[], 64));
            let Some((count, reason)) = expected else {
                let error = made.err().unwrap();
                assert_eq!(error.code(), "context-overflow");
                assert!(error.message().contains(&len.to_string()) && error.message().contains("64"), "{error}");
                continue;
            };
            let mut stub = Stub { samples, ..Stub::saying(&[1; 500], len) };
            let (_, result) = run(&mut stub, &mut TokenCache::new(), &mut made.unwrap()).unwrap();
            assert_eq!((result.tokens.len(), result.finish_reason), (count, reason), "{len} {max_tokens:?}");
            assert!(stub.held.len() <= 64);
        }
    }
}

#[test]
fn bad_prompts_are_refused_before_anything_runs() {
    for prompt in [vec![], vec![VOCAB as u32], vec![1, u32::MAX]] {
        let error = Generation::new(prompt, &greedy(), context(&[], 64)).err().unwrap();
        assert_eq!(error.code(), "invalid-argument");
    }
}

#[test]
fn the_prompt_runs_in_chunks_with_progress() {
    let mut stub = Stub::saying(&[EOS], 10);
    let mut cache = TokenCache::new();
    let mut generation = Generation::new(vec![1; 10], &greedy(), context(&[], 64)).unwrap();
    for done in [4, 8, 10] {
        assert_eq!(block_on(generation.next(&mut stub, &mut cache)).unwrap(), Some(Event::Prompt { done, total: 10 }));
    }
    assert_eq!(stub.calls, ["forward 4@0", "forward 4@4", "forward 2@8"]);
}

#[test]
fn a_prompt_that_begins_like_the_last_runs_only_the_rest() {
    for samples in [false, true] {
        let (mut stub, mut cache) = (Stub { samples, ..Stub::saying(&[1, 2, EOS], 3) }, TokenCache::new());
        let mut first = Generation::new(PROMPT.to_vec(), &greedy(), context(&["z", "a", "b"], 64)).unwrap();
        run(&mut stub, &mut cache, &mut first).unwrap();
        stub.logits_at = Stub::saying(&[4, EOS], 6).logits_at;
        stub.calls.clear();
        let prompt = [PROMPT.as_slice(), &[1, 2, 9]].concat();
        let mut second = Generation::new(prompt, &greedy(), context(&["z", "a", "b", "c", "d"], 64)).unwrap();
        let (_, result) = run(&mut stub, &mut cache, &mut second).unwrap();
        assert_eq!(stub.calls[0], "forward 1@5");
        assert_eq!((result.usage.cached_tokens, result.text.as_str()), (5, "d"));
    }
}

#[test]
fn a_device_draws_more_and_more_tokens_a_call() {
    let mut stub = Stub { samples: true, ..Stub::saying(&[1; 100], 3) };
    let options = GenerateOptions { max_tokens: Some(20), ..greedy() };
    let mut generation = Generation::new(PROMPT.to_vec(), &options, context(&[], 64)).unwrap();
    run(&mut stub, &mut TokenCache::new(), &mut generation).unwrap();
    assert_eq!(stub.calls[1..], ["decode 1@3", "decode 2@4", "decode 4@6", "decode 8@10", "decode 5@18"]);
}

#[test]
fn random_answers_are_the_same_on_host_and_device() {
    let logits =
        |position: usize| (0..VOCAB).map(|id| ((id * 7 + position * 3) % 11) as f32 * 0.3).collect::<Vec<f32>>();
    for seed in 0..20 {
        let options =
            GenerateOptions { max_tokens: Some(30), seed: Some(seed), ignore_end: true, ..Default::default() };
        let [host, device] = [false, true].map(|samples| {
            let mut stub = Stub { samples, ..Stub::new(logits) };
            let mut generation = Generation::new(PROMPT.to_vec(), &options, context(&[], 64)).unwrap();
            run(&mut stub, &mut TokenCache::new(), &mut generation).unwrap().1.tokens
        });
        assert_eq!(host, device);
        assert_eq!(host.len(), 30);
    }
}

#[test]
fn an_abort_ends_between_steps_and_leaves_the_rest_usable() {
    for samples in [false, true] {
        for after in 0..7 {
            let mut stub = Stub { samples, ..Stub::saying(&[1, 2, 3, 4, 5, EOS], 3) };
            let mut cache = TokenCache::new();
            let pieces = ["z", "a", "b", "c", "d", "e"];
            let mut generation = Generation::new(PROMPT.to_vec(), &greedy(), context(&pieces, 64)).unwrap();
            let mut seen = String::new();
            for _ in 0..after {
                if let Some(Event::Piece(piece)) = block_on(generation.next(&mut stub, &mut cache)).unwrap() {
                    seen.push_str(&piece);
                }
            }
            let n_calls = stub.calls.len();
            generation.abort_flag().abort();
            generation.abort_flag().abort();
            let event = block_on(generation.next(&mut stub, &mut cache)).unwrap();
            let Some(Event::Done(result)) = event else { panic!("expected the end, found {event:?}") };
            let reason = if after == 7 { FinishReason::Stop } else { FinishReason::Abort };
            assert_eq!((result.finish_reason, &result.text), (reason, &seen));
            assert_eq!(stub.calls.len(), n_calls);
            assert_eq!(cache.tokens(), stub.held);
            let mut fresh = Generation::new(PROMPT.to_vec(), &greedy(), context(&pieces, 64)).unwrap();
            assert_eq!(run(&mut stub, &mut cache, &mut fresh).unwrap().1.text, "abcde");
        }
    }
}

#[test]
fn a_failure_in_the_middle_leaves_the_rest_usable() {
    for samples in [false, true] {
        for fails_at in 1..5 {
            let mut stub =
                Stub { samples, fails_at: Some(fails_at), max_tokens: 2, ..Stub::saying(&[1, 2, 3, EOS], 3) };
            let mut cache = TokenCache::new();
            let pieces = ["z", "a", "b", "c"];
            let mut generation = Generation::new(PROMPT.to_vec(), &greedy(), context(&pieces, 64)).unwrap();
            let error = run(&mut stub, &mut cache, &mut generation).unwrap_err();
            assert_eq!(error.code(), "device-lost");
            assert!(cache.tokens().is_empty(), "nothing of a failed run counts");
            assert_eq!(block_on(generation.next(&mut stub, &mut cache)).unwrap(), None);
            stub.fails_at = None;
            let mut fresh = Generation::new(PROMPT.to_vec(), &greedy(), context(&pieces, 64)).unwrap();
            assert_eq!(run(&mut stub, &mut cache, &mut fresh).unwrap().1.text, "abc");
        }
    }
}

#[test]
fn log_probabilities_come_one_per_token() {
    let options = GenerateOptions { logprobs: true, top_logprobs: 2, ..greedy() };
    let (_, result) = answer(&[1, 2, EOS], &["z", "a", "b"], &options);
    let logprobs = result.logprobs.unwrap();
    assert_eq!(logprobs.iter().map(|entry| entry.token.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(logprobs[0].top_logprobs[0].id, 1);
    assert_eq!(logprobs[0].top_logprobs.len(), 2);
    assert!(logprobs.iter().all(|entry| entry.logprob.is_finite() && entry.logprob < 0.0));
}

#[test]
fn results_have_the_names_of_the_js_api() {
    let (_, result) = answer(&[1, EOS], &["z", "a"], &greedy());
    let json = serde_json::to_value(&result).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&json), ["text", "tokens", "finishReason", "usage", "stats"]);
    assert_eq!(json["finishReason"], "stop");
    assert_eq!(keys(&json["usage"]), ["promptTokens", "completionTokens", "cachedTokens"]);
    let stats =
        ["timeToFirstTokenMs", "promptMs", "decodeMs", "promptTokensPerSecond", "decodeTokensPerSecond", "backend"];
    assert_eq!(keys(&json["stats"]), stats);
}

#[test]
fn the_prompt_is_timed_to_the_first_token_and_decoding_after_it() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CLOCK: AtomicU32 = AtomicU32::new(0);
    // Each look at the clock takes ten milliseconds.
    let ticking =
        GenerationContext { now_ms: || f64::from(CLOCK.fetch_add(10, Ordering::Relaxed)), ..context(&[], 64) };
    let options = GenerateOptions { max_tokens: Some(5), ..greedy() };
    let mut generation = Generation::new(PROMPT.to_vec(), &options, ticking).unwrap();
    let mut stub = Stub::saying(&[1; 5], 3);
    let stats = run(&mut stub, &mut TokenCache::new(), &mut generation).unwrap().1.stats;
    assert_eq!((stats.time_to_first_token_ms, stats.prompt_ms, stats.decode_ms), (10.0, 10.0, 10.0));
    assert_eq!((stats.prompt_tokens_per_second, stats.decode_tokens_per_second), (300.0, 400.0));
}

#[test]
fn ignoring_the_end_goes_on() {
    let options = GenerateOptions { max_tokens: Some(4), ignore_end: true, ..greedy() };
    assert_eq!(answer(&[1, EOS, 2, EOS], &[], &options).1.tokens, [1, EOS, 2, EOS]);
}

#[test]
fn generations_that_take_turns_do_not_disturb_each_other() {
    for samples in [false, true] {
        // What comes next depends on the tokens held, so that a foreign cache would show.
        let mut stub = Stub { samples, ..Stub::new(|_| Vec::new()) };
        stub.logits_of = Some(Box::new(|held: &[u32]| {
            let sum: u32 = held.iter().zip(1u32..).map(|(token, place)| token * place).sum();
            (0..VOCAB as u32).map(|id| if id == sum % 13 { 5.0 } else { 0.0 }).collect()
        }));
        let options = GenerateOptions { max_tokens: Some(12), ..greedy() };
        let start = |prompt: &[u32]| Generation::new(prompt.to_vec(), &options, context(&["x"; VOCAB], 64)).unwrap();
        let prompts = [[1, 2, 3], [1, 5, 6]];
        let alone = prompts.map(|prompt| run(&mut stub, &mut TokenCache::new(), &mut start(&prompt)).unwrap().1.tokens);
        let mut cache = TokenCache::new();
        let mut pair = prompts.map(|prompt| start(&prompt));
        let mut results = [None, None];
        while results.iter().any(Option::is_none) {
            for (generation, result) in pair.iter_mut().zip(&mut results) {
                if let Some(Event::Done(done)) = block_on(generation.next(&mut stub, &mut cache)).unwrap() {
                    *result = Some(done.tokens);
                }
            }
        }
        assert_eq!(results, alone.clone().map(Some));
        // A foreign use of the cache in the middle counts as well.
        let mut generation = start(&prompts[0]);
        let mut tokens = None;
        while tokens.is_none() {
            stub.held = vec![9; 3];
            cache.clear();
            if let Some(Event::Done(done)) = block_on(generation.next(&mut stub, &mut cache)).unwrap() {
                tokens = Some(done.tokens);
            }
        }
        assert_eq!(tokens.as_ref(), Some(&alone[0]));
    }
}

#[test]
fn a_profile_is_taken_from_the_start_to_the_end_of_one_answer() {
    for fails_at in [None, Some(3)] {
        let mut stub = Stub { fails_at, ..Stub::saying(&[1, 2, EOS], 3) };
        let options = GenerateOptions { profile: true, ..greedy() };
        let mut generation = Generation::new(PROMPT.to_vec(), &options, context(&["x"; VOCAB], 64)).unwrap();
        let kernels = run(&mut stub, &mut TokenCache::new(), &mut generation).map(|(_, result)| result.stats.kernels);
        assert_eq!(kernels.is_err(), fails_at.is_some());
        assert!(kernels.is_err() || kernels.unwrap().is_some());
        assert_eq!(stub.calls.first().map(String::as_str), Some("profile true"));
        assert_eq!(stub.calls.last().map(String::as_str), Some("profile false"));
    }
    let mut stub = Stub::saying(&[1, EOS], 3);
    let mut generation = Generation::new(PROMPT.to_vec(), &greedy(), context(&["x"; VOCAB], 64)).unwrap();
    assert_eq!(run(&mut stub, &mut TokenCache::new(), &mut generation).unwrap().1.stats.kernels, None);
    assert!(stub.calls.iter().all(|call| !call.starts_with("profile")));
}

/// A model whose next token depends on all tokens held, and that repeats itself often; random at temperatures above 0.
fn reciting(samples: bool) -> Stub {
    let mut stub = Stub { samples, max_tokens: 64, ..Stub::new(|_| Vec::new()) };
    stub.logits_of = Some(Box::new(|held: &[u32]| {
        let place = held.len() as u32;
        // Mostly the same six tokens in a row, now and then something else.
        let next = if place.is_multiple_of(23) { 7 + held[held.len() / 2] % 5 } else { place % 6 };
        (0..VOCAB as u32).map(|id| if id == next { 3.0 } else { (id * 7 % 5) as f32 * 0.3 }).collect()
    }));
    stub
}

/// As [`run`], but the device may hold more than the history says: what was guessed wrongly.
fn run_open(stub: &mut Stub, generation: &mut Generation) -> GenerateResult {
    let mut cache = TokenCache::new();
    loop {
        let event = block_on(generation.next(stub, &mut cache)).unwrap();
        assert!(stub.held.starts_with(cache.tokens()), "the device holds what the history says");
        match event {
            Some(Event::Done(result)) => return *result,
            Some(_) => {}
            None => panic!("an end without a result"),
        }
    }
}

#[test]
fn guessing_ahead_changes_no_token_and_saves_calls() {
    let settings = [(0.0, 1.0), (1.0, 1.0), (0.7, 1.2)];
    for (samples, seed) in [false, true].into_iter().flat_map(|samples| (0..10).map(move |seed| (samples, seed))) {
        for (temperature, repeat_penalty) in settings {
            let answer_with = |speculative| {
                let options = GenerateOptions {
                    speculative,
                    temperature: Some(temperature),
                    repeat_penalty: Some(repeat_penalty),
                    max_tokens: Some(60),
                    seed: Some(seed),
                    logprobs: repeat_penalty != 1.0,
                    ..GenerateOptions::default()
                };
                let mut stub = reciting(samples);
                let mut generation = Generation::new(PROMPT.to_vec(), &options, context(&["x"; VOCAB], 64)).unwrap();
                (run_open(&mut stub, &mut generation), stub.calls.len())
            };
            let (plain, n_plain) = answer_with(0);
            assert_eq!(plain.stats.drafted_tokens, None);
            for most in [1, 5, 32] {
                let (guessed, n_guessed) = answer_with(most);
                assert_eq!(guessed.tokens, plain.tokens, "{temperature} {seed} {most}");
                assert_eq!(guessed.finish_reason, plain.finish_reason);
                assert_eq!(guessed.logprobs, plain.logprobs);
                let counts = (guessed.stats.drafted_tokens.unwrap(), guessed.stats.accepted_tokens.unwrap());
                assert!(counts.1 <= counts.0);
                if temperature == 0.0 && !samples && most > 1 {
                    assert!(counts.1 > 20 && n_guessed * 3 < n_plain * 2, "{counts:?}, {n_guessed} of {n_plain}");
                }
            }
        }
    }
}

#[test]
fn guessing_ahead_stays_within_limits_and_stops_in_the_middle_of_a_guess() {
    for (max_tokens, capacity) in [(1, 64), (2, 64), (7, 64), (100, 20), (100, 9)] {
        for script in [vec![1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2], vec![1, 2, 1, 2, 1, 2, EOS, 2, 1, 2]] {
            let results = [0, 8].map(|speculative| {
                let options = GenerateOptions { speculative, max_tokens: Some(max_tokens), ..greedy() };
                let context = context(&["x"; VOCAB], capacity);
                let mut generation = Generation::new(PROMPT.to_vec(), &options, context).unwrap();
                let mut stub = Stub::saying(&script, PROMPT.len());
                let result = run_open(&mut stub, &mut generation);
                assert!(stub.held.len() <= capacity);
                (result.tokens, result.finish_reason)
            });
            assert_eq!(results[0], results[1]);
        }
    }
}

#[test]
fn generations_that_take_turns_find_their_copies_again() {
    for samples in [false, true] {
        let options = GenerateOptions { max_tokens: Some(20), speculative: 4, ..greedy() };
        let start = |prompt: &[u32]| Generation::new(prompt.to_vec(), &options, context(&["x"; VOCAB], 64)).unwrap();
        let prompts = [[[1, 2, 3]; 6].concat(), [[1, 5, 6]; 6].concat()];
        let mut stub = reciting(samples);
        let alone = [0, 1].map(|index| run_open(&mut stub, &mut start(&prompts[index])).tokens);
        let mut cache = TokenCache::with_budget(200);
        stub.calls.clear();
        let mut pair = [0, 1].map(|index| start(&prompts[index]));
        let mut results = [None, None];
        while results.iter().any(Option::is_none) {
            for (generation, result) in pair.iter_mut().zip(&mut results) {
                if let Some(Event::Done(done)) = block_on(generation.next(&mut stub, &mut cache)).unwrap() {
                    *result = Some(done.tokens);
                }
            }
        }
        assert_eq!(results, alone.map(Some));
        let forwarded = stub
            .calls
            .iter()
            .filter_map(|call| call.strip_prefix("forward ")?.split('@').next()?.parse::<usize>().ok());
        // Each prompt once, and then a few tokens a turn: copies are made of eight tokens more or none.
        assert!(forwarded.sum::<usize>() < 36 + 2 * 20 * 8, "{:?}", stub.calls);
        assert!(stub.calls.iter().any(|call| call.starts_with("restore")));
    }
}
