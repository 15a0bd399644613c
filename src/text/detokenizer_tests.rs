//! Streamed text against text at once.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::text::samples::{byte_fallback, byte_level, spaces_json};
use crate::text::{Special, Vocabulary};
use serde_json::json;

/// A generator of numbers for tests: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

fn byte_id(byte: u8) -> u32 {
    3 + u32::from(byte)
}

fn pieces(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    let mut stream = Detokenizer::new(tokenizer, Start::Text);
    ids.iter().map(|&id| stream.push(id).unwrap().unwrap_or_else(|| "–".to_string())).collect()
}

#[test]
fn an_emoji_of_four_byte_tokens_comes_whole() {
    let tokenizer = Tokenizer::from_vocabulary(byte_fallback()).unwrap();
    let ids = tokenizer.encode("Hi🙂🙂", Special::Parse).unwrap();
    assert_eq!(pieces(&tokenizer, &ids), ["Hi", "–", "–", "–", "🙂", "–", "–", "–", "🙂"]);
}

#[test]
fn half_an_emoji_becomes_replacement_characters_and_the_stream_goes_on() {
    let tokenizer = Tokenizer::from_vocabulary(byte_fallback()).unwrap();
    let hi = tokenizer.id_of("▁Hi").unwrap();
    let mut ids = vec![byte_id(0xf0), byte_id(0x9f), hi];
    ids.extend("🙂".bytes().map(byte_id));
    assert_eq!(pieces(&tokenizer, &ids), ["–", "–", "\u{fffd}\u{fffd} Hi", "–", "–", "–", "🙂"]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "\u{fffd}\u{fffd} Hi🙂");
}

#[test]
fn tokens_that_straddle_characters_are_held_until_each_is_whole() {
    let mut vocabulary = byte_level();
    let straddling: Vec<String> = [[0x20, 0xf0], [0x9f, 0x99], [0x82, 0xf0]]
        .iter()
        .map(|bytes| bytes.iter().map(|&byte| crate::text::bytes::byte_to_char(byte)).collect())
        .collect();
    let first = vocabulary.tokens.len() as u32;
    vocabulary.tokens.extend(straddling);
    vocabulary.types.as_mut().unwrap().extend([1, 1, 1]);
    let tokenizer = Tokenizer::from_vocabulary(vocabulary).unwrap();
    let ids = [first, first + 1, first + 2, first + 1, 0x82];
    assert_eq!(pieces(&tokenizer, &ids), [" ", "–", "🙂", "–", "🙂"]);
}

#[test]
fn joined_pieces_equal_the_text_at_once_for_random_ids() {
    let wide = Vocabulary { add_space_prefix: Some(false), ..byte_fallback() };
    for (vocabulary, seed) in [(byte_level(), 1), (byte_fallback(), 2), (wide, 3)] {
        let tokenizer = Tokenizer::from_vocabulary(vocabulary).unwrap();
        let mut numbers = Numbers(seed);
        for _ in 0..20_000 {
            let n = numbers.below(24);
            let ids: Vec<u32> = (0..n).map(|_| numbers.below(tokenizer.vocab_size() as u64) as u32).collect();
            let mut stream = Detokenizer::new(&tokenizer, Start::Text);
            let mut text = String::new();
            for &id in &ids {
                text.push_str(&stream.push(id).unwrap().unwrap_or_default());
            }
            text.push_str(&stream.finish());
            assert_eq!(text, tokenizer.decode(&ids).unwrap(), "{ids:?}");
        }
    }
}

#[test]
fn byte_level_text_equals_the_lossy_reading_of_the_bytes_for_random_ids() {
    let tokenizer = Tokenizer::from_vocabulary(byte_level()).unwrap();
    let mut numbers = Numbers(4);
    for _ in 0..5_000 {
        let bytes: Vec<u8> = (0..numbers.below(12)).map(|_| numbers.below(256) as u8).collect();
        let ids: Vec<u32> = bytes.iter().map(|&byte| u32::from(byte)).collect();
        assert_eq!(tokenizer.decode(&ids).unwrap(), String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_continuation_keeps_its_leading_space() {
    let tokenizer = Tokenizer::from_vocabulary(byte_fallback()).unwrap();
    let hi = tokenizer.id_of("▁Hi").unwrap();
    assert_eq!(Detokenizer::new(&tokenizer, Start::Continuation).push(hi).unwrap().unwrap(), " Hi");
    assert_eq!(Detokenizer::new(&tokenizer, Start::Text).push(hi).unwrap().unwrap(), "Hi");
}

#[test]
fn control_tokens_are_left_out_and_an_unknown_id_changes_nothing() {
    let tokenizer = std::sync::Arc::new(Tokenizer::from_vocabulary(byte_fallback()).unwrap());
    let mut stream = Detokenizer::new(tokenizer.clone(), Start::Text);
    assert_eq!(stream.push(byte_id(0xc3)).unwrap(), None);
    assert_eq!(stream.push(2).unwrap(), None);
    assert_eq!(stream.push(99_999).unwrap_err().code(), "invalid-argument");
    assert_eq!(stream.push(byte_id(0xa9)).unwrap().unwrap(), "é");
    assert_eq!(stream.push(byte_id(0xc3)).unwrap(), None);
    assert_eq!(stream.finish(), "\u{fffd}");
    let mut kept = Detokenizer::new(&*tokenizer, Start::Text).keep_control(true);
    assert_eq!(kept.push(2).unwrap().unwrap(), "</s>");
}

#[test]
fn an_unsupported_decoder_is_an_error_and_no_panic() {
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": "</w>",
            "fuse_unk": false, "byte_fallback": false, "vocab": {"a": 0, "b</w>": 1, "c</w>": 2}, "merges": []}
    });
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
    assert_eq!(tokenizer.encode("ab", Special::Parse).unwrap(), [0, 1]);
    for ids in [&[0][..], &[]] {
        let mut stream = Detokenizer::new(&tokenizer, Start::Text);
        for &id in ids {
            let error = stream.push(id).unwrap_err();
            assert!(error.code() == "unsupported-model" && error.message().contains("BPEDecoder"));
        }
    }
}

#[test]
fn a_file_without_a_decoder_puts_spaces_between_its_words() {
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "?": 2}, "unk_token": "?"}
    });
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
    let ids = tokenizer.encode("a  b c", Special::Parse).unwrap();
    assert_eq!(tokenizer.decode(&ids).unwrap(), "a b ?");
}

#[test]
fn every_word_keeps_its_space_in_a_stream() {
    let tokenizer = spaces_json(
        json!(null),
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}),
    );
    let ids = tokenizer.encode("wo us wo", Special::Parse).unwrap();
    assert_eq!(pieces(&tokenizer, &ids), ["wo", " us", " wo"]);
}
