//! Reading a tokenizer.json. The library parses it; here is what it does not check, and how its parts map to ours.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tokenizers::{DecoderWrapper, Model};

use crate::error::{Error, Result};
use crate::text::detokenizer::Decoding;
use crate::text::pipeline::Pipeline;
use crate::text::table::TokenTable;
use crate::text::tokenizer::{Class, Parts};

/// The highest id that is believed: lists by id are as long as the highest.
const MOST_TOKENS: u32 = 1 << 22;

/// The parts of the file that are looked at before the library sees it.
#[derive(Deserialize)]
struct Outline {
    model: ModelOutline,
}

#[derive(Deserialize)]
struct ModelOutline {
    #[serde(rename = "type")]
    kind: Option<String>,
    continuing_subword_prefix: Option<String>,
}

/// The parts of a tokenizer, from the bytes of a tokenizer.json.
///
/// # Errors
/// `MalformedFile` when it is not one, `UnsupportedModel` for a part that is not supported.
pub(crate) fn read(bytes: &[u8]) -> Result<Parts> {
    let outline: Outline =
        serde_json::from_slice(bytes).map_err(|error| Error::malformed(format!("not a tokenizer.json: {error}")))?;
    // The library slices the prefix off merges without looking whether it is there.
    let is_bpe = outline.model.kind.as_deref().is_none_or(|kind| kind == "BPE");
    if is_bpe && outline.model.continuing_subword_prefix.is_some_and(|prefix| !prefix.is_empty()) {
        return Err(Error::unsupported("a BPE tokenizer with a continuing_subword_prefix is not supported"));
    }
    let mut parse: Pipeline = serde_json::from_slice(bytes)
        .map_err(|error| Error::malformed(format!("not a valid tokenizer.json: {error}")))?;
    parse.with_padding(None);
    parse.with_truncation(None).map_err(|error| Error::internal("truncation cannot be turned off").because(error))?;
    let (table, classes) = table(&parse)?;
    let decoding = parse.get_decoder().map_or(Decoding::Words, decoding);
    let (prefix, suffix) = wrapping(&parse)?;
    Ok(Parts { parse, table: Arc::new(table), classes, decoding, prefix, suffix })
}

fn table(parse: &Pipeline) -> Result<(TokenTable, Vec<Class>)> {
    let vocabulary = parse.get_model().get_vocab();
    let added = parse.get_added_vocabulary().get_added_tokens_decoder();
    let highest = vocabulary.values().chain(added.keys()).max().copied();
    let n = match highest {
        None => return Err(Error::malformed("the tokenizer.json has no tokens")),
        Some(highest) if highest >= MOST_TOKENS => {
            return Err(Error::malformed(format!(
                "token ids should be below {MOST_TOKENS}; the tokenizer.json has {highest}"
            )));
        }
        Some(highest) => highest as usize + 1,
    };
    let mut tokens = vec![""; n];
    let mut classes = vec![Class::Ordinary; n];
    for (token, &id) in &vocabulary {
        set(&mut tokens, id, token);
    }
    for (&id, token) in added {
        set(&mut tokens, id, &token.content);
        set(&mut classes, id, if token.special { Class::Control } else { Class::Literal });
    }
    Ok((TokenTable::new(&tokens)?, classes))
}

fn set<V>(list: &mut [V], id: u32, value: V) {
    if let Some(place) = list.get_mut(id as usize) {
        *place = value;
    }
}

/// What the file's post-processor puts before and after a text.
fn wrapping(parse: &Pipeline) -> Result<(Vec<u32>, Vec<u32>)> {
    let encode = |wrapped| {
        let encoding = parse.encode_fast("a", wrapped);
        encoding
            .map(|encoding| encoding.get_ids().to_vec())
            .map_err(|error| Error::malformed("the tokenizer.json cannot tokenize").because(error))
    };
    let (plain, wrapped) = (encode(false)?, encode(true)?);
    let at = wrapped.windows(plain.len().max(1)).position(|window| window == plain).unwrap_or(0);
    let (prefix, rest) = wrapped.split_at_checked(at).unwrap_or_default();
    Ok((prefix.to_vec(), rest.get(plain.len()..).unwrap_or_default().to_vec()))
}

/// The decoding that equals the file's decoder. The library's own decoders are not used: some panic on an empty token
/// or list, and none can stream.
fn decoding(decoder: &DecoderWrapper) -> Decoding {
    let described = serde_json::to_value(decoder).unwrap_or_default();
    let mut parts = Vec::new();
    flatten(&described, &mut parts);
    let kind = |part: &Value| part.get("type").and_then(Value::as_str).map(str::to_string);
    if let [only] = parts.as_slice() {
        match kind(only).as_deref() {
            Some("ByteLevel") => return Decoding::ByteLevel,
            Some("WordPiece") => {
                let prefix = only.get("prefix").and_then(Value::as_str).unwrap_or("##").to_string();
                return Decoding::WordPiece { prefix, cleanup: only.get("cleanup") == Some(&Value::Bool(true)) };
            }
            _ => {}
        }
    }
    let (mut strip_first, mut joins_bytes, mut has_spaces) = (false, false, false);
    for part in parts {
        match kind(part).as_deref() {
            Some("Replace") if part.pointer("/pattern/String") == Some(&"▁".into()) && part["content"] == " " => {
                has_spaces = true
            }
            Some("Metaspace") if part["replacement"] == "▁" => {
                has_spaces = true;
                strip_first |= part["prepend_scheme"] != "never";
            }
            Some("ByteFallback") => joins_bytes = true,
            Some("Fuse") => {}
            Some("Strip") if part["content"] == " " && part["start"] == 1 && part["stop"] == 0 => strip_first = true,
            other => return Decoding::Unsupported(other.unwrap_or("without a name").to_string()),
        }
    }
    if has_spaces {
        Decoding::Spaces { strip_first, joins_bytes }
    } else {
        Decoding::Unsupported("Sequence".to_string())
    }
}

fn flatten<'v>(decoder: &'v Value, parts: &mut Vec<&'v Value>) {
    match decoder.get("decoders").and_then(Value::as_array) {
        Some(inner) => inner.iter().for_each(|part| flatten(part, parts)),
        None => parts.push(decoder),
    }
}
