//! Real vocabularies against the recordings of an independent engine: text to ids, special tokens parsed, no begin of
//! text added. The models come from the cache folder that `npm run fetch-model` fills.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use hanzo_edge::format::{Metadata, Parsed, parse};
use hanzo_edge::registry::{cached, find};
use hanzo_edge::text::{Detokenizer, Special, Start, Tokenizer, Vocabulary};
use serde_json::Value;

const RECORDINGS: &str = include_str!("../fixtures/oracle/tokenize.json");

/// The metadata of a model in the cache; `None` when it is not there.
fn metadata(name: &str) -> Option<Metadata> {
    let path = cached(find(name).unwrap()).unwrap()?;
    let mut file = File::open(&path).unwrap();
    let file_len = file.metadata().unwrap().len();
    let mut prefix = Vec::new();
    loop {
        match parse(&prefix, Some(file_len)).unwrap() {
            Parsed::Header(header) => return Some(header.metadata),
            Parsed::NeedBytes(n) => {
                let missing = n - prefix.len() as u64;
                assert_eq!(file.by_ref().take(missing).read_to_end(&mut prefix).unwrap() as u64, missing);
            }
        }
    }
}

fn tokenizer(metadata: &Metadata) -> Tokenizer {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let id = |name: &str| metadata.get::<u32>(&key(&format!("{name}_token_id"))).unwrap();
    let flag = |name: &str| metadata.get::<bool>(&key(name)).unwrap();
    Tokenizer::from_vocabulary(Vocabulary {
        model: metadata.require::<&str>(&key("model")).unwrap().to_owned(),
        pre: metadata.get::<&str>(&key("pre")).unwrap().map(str::to_owned),
        tokens: metadata.get_strings(&key("tokens")).unwrap().unwrap(),
        scores: metadata.get::<&[f32]>(&key("scores")).unwrap().map(<[f32]>::to_vec),
        types: metadata.get::<&[i32]>(&key("token_type")).unwrap().map(<[i32]>::to_vec),
        merges: metadata.get_strings(&key("merges")).unwrap(),
        bos: id("bos"),
        eos: id("eos"),
        eot: id("eot"),
        unknown: id("unknown"),
        padding: id("padding"),
        add_bos: flag("add_bos_token"),
        add_eos: flag("add_eos_token"),
        add_space_prefix: flag("add_space_prefix"),
    })
    .unwrap()
}

/// Compares every line recorded under `recording`, and that each comes back, at once and streamed.
fn check(tokenizer: &Arc<Tokenizer>, recording: &str) {
    let recordings: Value = serde_json::from_str(RECORDINGS).unwrap();
    let lines = recordings[recording].as_array().unwrap();
    assert!(lines.len() >= 30, "{recording} has {} lines", lines.len());
    for line in lines {
        let text = line["text"].as_str().unwrap();
        let expected: Vec<u32> = line["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
        let ids = tokenizer.encode(text, Special::Parse).unwrap();
        assert_eq!(ids, expected, "{recording}: {text:?}");
        assert_eq!(tokenizer.decode_with_control(&ids).unwrap(), text);
        let mut stream = Detokenizer::new(Arc::clone(tokenizer), Start::Text).keep_control(true);
        let mut streamed: String = ids.iter().filter_map(|&id| stream.push(id).unwrap()).collect();
        streamed.push_str(&stream.finish());
        assert_eq!(streamed, text);
    }
}

#[test]
fn smollm2_tokenizes_as_recorded() {
    let metadata =
        metadata("smollm2-135m-instruct").expect("the default model is not in the cache: npm run fetch-model");
    let tokenizer = Arc::new(tokenizer(&metadata));
    check(&tokenizer, "smollm2-135m-instruct-q4_1");
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.add_bos()), (Some(1), Some(2), false));
    assert_eq!(tokenizer.end_of_turn_ids(), [2, 0]);
}

#[test]
fn gemma_tokenizes_as_recorded() {
    let Some(metadata) = metadata("gemma-3-270m") else {
        println!("skipped: gemma-3-270m is not in the cache (npm run fetch-model gemma-3-270m)");
        return;
    };
    let tokenizer = Arc::new(tokenizer(&metadata));
    check(&tokenizer, "gemma-3-270m-q4_k_m");
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.add_bos()), (Some(2), Some(1), true));
    assert_eq!(tokenizer.token(tokenizer.end_of_turn_ids()[1]), Some("<end_of_turn>"));
}
