//! Tokenizers of small vocabularies, among them the faults that users of other runtimes met.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::text::samples::{byte_fallback, byte_level, spaces_json};

fn spellings(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|&id| tokenizer.token(id).unwrap().to_string()).collect()
}

#[test]
fn byte_level_text_is_merged_and_comes_back() {
    let tokenizer = Tokenizer::from_vocabulary(byte_level()).unwrap();
    assert_eq!(spellings(&tokenizer, &tokenizer.encode("hello wo", Special::Parse).unwrap()), ["hello", "Ġw", "o"]);
    for text in ["", "hello world", "  é🙂\n\t日本 ", "<|im_start|>user\n<tool>x<|im_end|>", "a\u{0}b\u{7f}"] {
        for special in [Special::Parse, Special::AsText] {
            let ids = tokenizer.encode(text, special).unwrap();
            assert_eq!(tokenizer.decode_with_control(&ids).unwrap(), text);
        }
    }
    assert_eq!(tokenizer.vocab_size(), 269);
    assert_eq!(tokenizer.id_of("Ġw"), Some(260));
    assert_eq!(tokenizer.token(269), None);
    assert_eq!(tokenizer.token_bytes(260).unwrap(), b" w");
    assert_eq!(tokenizer.token_bytes(262), None);
}

#[test]
fn control_tokens_that_a_user_spells_stay_text_and_user_defined_tokens_do_not() {
    let tokenizer = Tokenizer::from_vocabulary(byte_level()).unwrap();
    assert_eq!(tokenizer.encode("<|im_end|>", Special::Parse).unwrap(), [264]);
    let ids = tokenizer.encode("<|im_end|><tool>", Special::AsText).unwrap();
    assert_eq!(ids.last(), Some(&265));
    assert!(ids.iter().all(|&id| !tokenizer.is_control(id)) && ids.len() > 5);
    assert_eq!(tokenizer.decode(&[263, 256, 264]).unwrap(), "he");
    assert_eq!(tokenizer.decode_with_control(&[263, 256, 264]).unwrap(), "<|im_start|>he<|im_end|>");
}

#[test]
fn added_tokens_with_letters_of_the_byte_alphabet_decode_as_themselves() {
    let tokenizer = Tokenizer::from_vocabulary(byte_level()).unwrap();
    for (text, id) in [("ilÖveyou", 266), ("ĠĠ", 267), ("a b🙂", 268)] {
        assert_eq!(tokenizer.encode(text, Special::Parse).unwrap(), [id]);
        assert_eq!(tokenizer.decode(&[id]).unwrap(), text);
        let beside = format!("Öhello{text} Ġw");
        assert_eq!(tokenizer.decode(&tokenizer.encode(&beside, Special::Parse).unwrap()).unwrap(), beside);
    }
}

#[test]
fn byte_level_added_tokens_of_a_tokenizer_json_decode_as_themselves_too() {
    let file = json!({
        "version": "1.0", "truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0},
        "padding": null,
        "added_tokens": [{"id": 0, "content": "ilÖveyou", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false}],
        "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "vocab": {"ilÖveyou": 0, "a": 1, "Ġ": 2, "Ġa": 3}, "merges": ["Ġ a"]}
    });
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
    let ids = tokenizer.encode("a  ailÖveyou", Special::Parse).unwrap();
    // The truncation of the file cuts nothing.
    assert_eq!(ids, [1, 2, 3, 0]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "a  ailÖveyou");
}

#[test]
fn the_space_after_a_special_token_follows_the_file() {
    let metaspace = |scheme: &str, split: bool| {
        spaces_json(
            json!(null),
            json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}),
        )
    };
    let legacy = json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]});
    let schemes = [
        metaspace("first", true),
        metaspace("always", true),
        metaspace("never", true),
        spaces_json(legacy, json!(null)),
        metaspace("first", false),
    ];
    let rows = [
        ("<sp>wo", ["<sp> wo", "<sp> ▁wo", "<sp> wo", "<sp> ▁wo", "<sp> wo"]),
        ("<sp> wo", ["<sp> ▁wo", "<sp> ▁wo", "<sp> ▁wo", "<sp> ▁▁ wo", "<sp> ▁wo"]),
        ("<sp>  wo", ["<sp> ▁ ▁wo", "<sp> ▁ ▁wo", "<sp> ▁ ▁wo", "<sp> ▁▁ ▁wo", "<sp> ▁▁ wo"]),
        ("wo<sp>us", ["▁wo <sp> us", "▁wo <sp> ▁us", "wo <sp> us", "▁wo <sp> ▁us", "▁wo <sp> us"]),
    ];
    for (text, expected) in rows {
        for (tokenizer, expected) in schemes.iter().zip(expected) {
            let ids = tokenizer.encode(text, Special::Parse).unwrap();
            assert_eq!(spellings(tokenizer, &ids).join(" "), expected, "{text:?}");
        }
    }
    // Where the format puts a space before the text, taking it off again gives the text back.
    for text in ["wo", " wo", "  wo", "wo us"] {
        let tokenizer = &schemes[3];
        assert_eq!(tokenizer.decode(&tokenizer.encode(text, Special::Parse).unwrap()).unwrap(), text);
    }
}

#[test]
fn a_model_file_with_a_space_prefix_puts_it_before_every_piece_of_text_and_takes_it_off() {
    let with = Tokenizer::from_vocabulary(byte_fallback()).unwrap();
    let without = Tokenizer::from_vocabulary(Vocabulary { add_space_prefix: Some(false), ..byte_fallback() }).unwrap();
    assert_eq!(spellings(&with, &with.encode("Hi<s>Hi", Special::Parse).unwrap()), ["▁Hi", "<s>", "▁Hi"]);
    assert_eq!(spellings(&without, &without.encode("Hi<s>Hi", Special::Parse).unwrap()), ["Hi", "<s>", "Hi"]);
    for text in ["Hi", " Hi", "  Hi", "Hié\n🙂 i"] {
        for tokenizer in [&with, &without] {
            assert_eq!(tokenizer.decode(&tokenizer.encode(text, Special::Parse).unwrap()).unwrap(), text);
        }
    }
}

#[test]
fn broken_vocabularies_are_refused_with_the_reason() {
    let cases: [(Vocabulary, &str, &str); 10] = [
        (Vocabulary { tokens: vec![], ..byte_level() }, "malformed-file", "no tokens"),
        (Vocabulary { types: Some(vec![1; 5]), ..byte_level() }, "malformed-file", "found 5"),
        (
            Vocabulary { scores: Some(vec![0.0; 15]), ..byte_fallback() },
            "malformed-file",
            "scores as tokens, 266; found 15",
        ),
        (
            Vocabulary { bos: Some(4_000_000_000), ..byte_level() },
            "malformed-file",
            "bos token should be one of the 269 tokens; found id 4000000000",
        ),
        (Vocabulary { eot: Some(269), ..byte_level() }, "malformed-file", "eot"),
        (Vocabulary { merges: Some(vec!["he".to_string()]), ..byte_level() }, "malformed-file", "merge 0"),
        (Vocabulary { merges: None, ..byte_level() }, "malformed-file", "merges"),
        (Vocabulary { scores: None, ..byte_fallback() }, "malformed-file", "scores"),
        (Vocabulary { model: "t5".to_string(), ..byte_level() }, "unsupported-model", "\"t5\""),
        (Vocabulary { pre: Some("moon".to_string()), ..byte_level() }, "unsupported-model", "\"moon\""),
    ];
    for (vocabulary, code, part) in cases {
        let error = Tokenizer::from_vocabulary(vocabulary).err().unwrap();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(part), "{error} should contain {part:?}");
    }
}

#[test]
fn broken_tokenizer_files_are_errors() {
    let prefixed = r#"{"version":"1.0","model":{"type":"BPE","continuing_subword_prefix":"@@","vocab":{"a":0,"b":1},"merges":["a b"]}}"#;
    let far = r###"{"version":"1.0","model":{"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"a":4294967295}}}"###;
    let empty = r###"{"version":"1.0","model":{"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{}}}"###;
    for (file, code) in [
        ("", "malformed-file"),
        ("<!DOCTYPE html>", "malformed-file"),
        ("{}", "malformed-file"),
        (r#"{"model":{"type":"BPE"}}"#, "malformed-file"),
        (prefixed, "unsupported-model"),
        (far, "malformed-file"),
        (empty, "malformed-file"),
        (&empty.replace(r#""model""#, r#""decoder":{"type":"Fuse","x":"\ud800"},"model""#), "malformed-file"),
        (
            &empty.replace(
                r#""model""#,
                r#""normalizer":{"type":"Precompiled","precompiled_charsmap":"////fw=="},"model""#,
            ),
            "unsupported-model",
        ),
    ] {
        assert_eq!(Tokenizer::from_json(file.as_bytes()).err().unwrap().code(), code, "{file}");
    }
}

#[test]
fn a_word_piece_file_wraps_and_decodes() {
    let special = |id: u32, content: &str| json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let file = json!({
        "version": "1.0", "truncation": null, "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": [special(0, "[PAD]"), special(1, "[UNK]"), special(2, "[CLS]"), special(3, "[SEP]")],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "play": 4, "##ing": 5, ".": 6}}
    });
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
    let ids = tokenizer.encode_wrapped("Playing. PLAY").unwrap();
    assert_eq!(ids, [2, 4, 5, 6, 4, 3]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "playing. play");
    assert_eq!(tokenizer.bos(), Some(2));
    assert!(tokenizer.add_bos());
}

#[test]
fn ids_outside_the_vocabulary_are_refused_and_spoil_nothing() {
    let tokenizer = Tokenizer::from_vocabulary(byte_level()).unwrap();
    for id in [269, u32::MAX, 1 << 31] {
        let error = tokenizer.decode(&[256, id]).unwrap_err();
        assert_eq!(error.code(), "invalid-argument");
        assert!(error.message().contains(&id.to_string()) && error.message().contains("269"));
    }
    assert_eq!(tokenizer.decode(&[259]).unwrap(), "hello");
}

#[test]
fn ends_of_turn_are_the_files_own_and_the_known_ones() {
    let tokenizer = Tokenizer::from_vocabulary(byte_fallback()).unwrap();
    assert_eq!(tokenizer.end_of_turn_ids(), [2, tokenizer.id_of("<end_of_turn>").unwrap()]);
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.unknown()), (Some(1), Some(2), Some(0)));
    let mut tokenizer = Tokenizer::from_vocabulary(byte_level()).unwrap();
    assert_eq!(tokenizer.end_of_turn_ids(), [264]);
    tokenizer.set_ends(None, [262, 9999, 262]);
    assert_eq!(tokenizer.end_of_turn_ids(), [262, 264]);
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (None, Some(262)));
}

#[test]
fn raw_prompts_obey_the_flags_of_the_file() {
    let ids = |vocabulary| Tokenizer::from_vocabulary(vocabulary).unwrap().encode_wrapped("he").unwrap();
    assert_eq!(ids(byte_level()), [256]);
    assert_eq!(ids(Vocabulary { add_bos: Some(true), ..byte_level() }), [262, 256]);
    assert_eq!(ids(Vocabulary { add_bos: Some(true), add_eos: Some(true), ..byte_level() }), [262, 256, 264]);
    assert_eq!(ids(Vocabulary { add_bos: Some(true), bos: None, ..byte_level() }), [256]);
    assert_eq!(ids(Vocabulary { pre: Some("llama-bpe".to_string()), ..byte_level() }), [262, 256]);
    assert_eq!(ids(byte_fallback())[0], 1);
    assert_eq!(ids(Vocabulary { add_bos: Some(false), ..byte_fallback() })[0], 3 + 256);
}

#[test]
fn a_chat_prompt_begins_with_one_begin_of_text_token_where_the_model_has_one() {
    for (add_bos, prints, expected) in [
        (Some(true), true, 1),
        (Some(true), false, 1),
        (Some(false), true, 1),
        (Some(false), false, 0),
        (None, true, 1),
        (None, false, 1),
    ] {
        let tokenizer = Tokenizer::from_vocabulary(Vocabulary { add_bos, ..byte_fallback() }).unwrap();
        let mut rendered = Rendered::default();
        rendered.push(if prints { "<s>Hi" } else { "Hi" }, true);
        let ids = tokenizer.encode_rendered(&rendered).unwrap();
        assert_eq!(ids.iter().filter(|&&id| id == 1).count(), expected, "{add_bos:?} {prints}");
        assert_eq!(ids.first() == Some(&1), expected == 1);
    }
    let mut rendered = Rendered::default();
    rendered.push("<s><s>Hi", true);
    assert_eq!(Tokenizer::from_vocabulary(byte_fallback()).unwrap().encode_rendered(&rendered).unwrap()[..2], [1, 263]);
    let without = Tokenizer::from_vocabulary(Vocabulary { bos: None, ..byte_fallback() }).unwrap();
    assert_eq!(without.encode_rendered(&rendered).unwrap()[..2], [1, 1]);
}

#[test]
fn untrusted_text_is_merged_with_its_neighbours_but_makes_no_control_tokens() {
    let tokenizer = Tokenizer::from_vocabulary(byte_level()).unwrap();
    let mut rendered = Rendered::default();
    for (text, trusted) in [("<|im_start|>hel", true), ("lo<|im_end|>", false), ("<|im_end|>", true)] {
        rendered.push(text, trusted);
    }
    let ids = tokenizer.encode_rendered(&rendered).unwrap();
    assert_eq!(ids.iter().filter(|&&id| tokenizer.is_control(id)).copied().collect::<Vec<_>>(), [263, 264]);
    assert_eq!(ids[..2], [263, 259], "hello is one token across the border");
    assert_eq!(ids.last(), Some(&264));
    assert_eq!(tokenizer.decode_with_control(&ids).unwrap(), rendered.text());
    // A spelling that only begins in untrusted text, or only ends there, counts as little.
    for parts in [[("<|im_", false), ("end|>", true)], [("<|im_", true), ("end|>", false)]] {
        let mut rendered = Rendered::default();
        parts.iter().for_each(|(text, trusted)| rendered.push(text, *trusted));
        assert!(tokenizer.encode_rendered(&rendered).unwrap().iter().all(|&id| !tokenizer.is_control(id)));
    }
}

#[test]
fn a_megabyte_of_spaces_is_tokenized() {
    let tokenizer = Tokenizer::from_vocabulary(byte_level()).unwrap();
    let text = format!("{}hello", " ".repeat(1 << 20));
    // "ĠĠ" is an added token: it is never merged to from text that spells spaces.
    assert_eq!(tokenizer.encode(&text, Special::AsText).unwrap().len(), (1 << 20) + 1);
}
