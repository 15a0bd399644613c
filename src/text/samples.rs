//! Small vocabularies for tests.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use crate::text::bytes::byte_to_char;
use crate::text::merge::SPACE;
use crate::text::{Tokenizer, Vocabulary};

/// The 256 bytes at ids 0 to 255, then "he", "ll", "hell", "hello", "Ġw", " d" merges, then `<s>`, `<|im_start|>`,
/// `<|im_end|>` (control, from id 262) and the user-defined `<tool>`, `ilÖveyou`, `Ġ`, `a b🙂` (from id 265).
pub(crate) fn byte_level() -> Vocabulary {
    let mut tokens: Vec<String> = (0..=255u8).map(|byte| byte_to_char(byte).to_string()).collect();
    tokens.extend(["he", "ll", "hell", "hello", "Ġw", "Ġd", "<s>", "<|im_start|>", "<|im_end|>"].map(str::to_string));
    tokens.extend(["<tool>", "ilÖveyou", "ĠĠ", "a b🙂"].map(str::to_string));
    let types = (0..tokens.len())
        .map(|id| {
            if id < 262 {
                1
            } else if id < 265 {
                3
            } else {
                4
            }
        })
        .collect();
    let merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "Ġ d"].map(str::to_string).to_vec();
    Vocabulary {
        model: "gpt2".to_string(),
        pre: Some("gpt-2".to_string()),
        tokens,
        types: Some(types),
        merges: Some(merges),
        bos: Some(262),
        eos: Some(264),
        ..Vocabulary::default()
    }
}

/// `<unk>`, `<s>`, `</s>`, the 256 byte tokens at ids 3 to 258, then "▁", "H", "i", "▁H", "▁Hi", "Hi" and the control
/// `<end_of_turn>`.
pub(crate) fn byte_fallback() -> Vocabulary {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(str::to_string).to_vec();
    tokens.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
    tokens.extend([SPACE, "H", "i", "▁H", "▁Hi", "Hi", "<end_of_turn>"].map(str::to_string));
    let n = tokens.len();
    let types = (0..n).map(|id| match id {
        0 => 2,
        1 | 2 => 3,
        3..=258 => 6,
        _ if id + 1 == n => 3,
        _ => 1,
    });
    Vocabulary {
        model: "llama".to_string(),
        types: Some(types.collect()),
        scores: Some((0..n).map(|id| -(id as f32)).collect()),
        tokens,
        bos: Some(1),
        eos: Some(2),
        unknown: Some(0),
        ..Vocabulary::default()
    }
}

/// The eleven tokens and one special of the table "the space after a special token", as a tokenizer.json whose
/// normalizer and pre-tokenizer are given.
pub(crate) fn spaces_json(normalizer: serde_json::Value, pre_tokenizer: serde_json::Value) -> Tokenizer {
    let tokens = ["<unk>", "▁", "▁▁", "w", "o", "wo", "▁wo", "u", "s", "us", "▁us"];
    let vocab: serde_json::Map<_, _> =
        tokens.iter().enumerate().map(|(id, token)| (token.to_string(), json!(id))).collect();
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [{"id": 11, "content": "<sp>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab,
            "merges": ["▁ ▁", "w o", "▁ wo", "u s", "▁ us"]}
    });
    Tokenizer::from_json(file.to_string().as_bytes()).unwrap()
}
