//! Reading a tokenizer.json. The library parses it; here is what it does not check, and how its parts map to ours.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tokenizers::Model;

use crate::error::{Error, Result};
use crate::text::detokenizer::Decoding;
use crate::text::pipeline::{Described, Pipeline};
use crate::text::table::TokenTable;
use crate::text::tokenizer::{Class, Parts};

/// The highest id that is believed: lists by id are as long as the highest.
const MOST_TOKENS: u32 = 1 << 22;

/// The parts of the file that are looked at before the library sees it.
#[derive(Deserialize)]
struct Outline {
    model: ModelOutline,
    #[serde(default)]
    normalizer: Value,
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
    // The library indexes into its table of characters without looking, and panics when it cannot be read.
    if has_key(&outline.normalizer, "precompiled_charsmap") {
        return Err(Error::unsupported("a tokenizer with a Precompiled normalizer is not supported"));
    }
    let mut parse: Pipeline = serde_json::from_slice(bytes)
        .map_err(|error| Error::malformed(format!("not a valid tokenizer.json: {error}")))?;
    parse.with_padding(None);
    parse.with_truncation(None).map_err(|error| Error::internal("truncation cannot be turned off").because(error))?;
    let (table, classes) = table(&parse)?;
    let decoding = parse.get_decoder().map_or(Decoding::Words, decoding);
    let none = Described(Value::Null);
    let Described(processor) = parse.get_post_processor().unwrap_or(&none);
    let (prefix, suffix) = wrapping(processor, table.len())?;
    Ok(Parts { parse, table: Arc::new(table), classes, decoding, prefix, suffix })
}

/// Whether `value` has an entry of this name anywhere.
fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(entries) => entries.iter().any(|(name, inner)| name == key || has_key(inner, key)),
        Value::Array(items) => items.iter().any(|item| has_key(item, key)),
        _ => false,
    }
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
fn wrapping(processor: &Value, n_tokens: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    let (mut prefix, mut suffix) = (Vec::new(), Vec::new());
    match processor.get("type").and_then(Value::as_str) {
        Some("Sequence") => {
            // Each wraps what the ones before it made.
            for inner in processor.get("processors").and_then(Value::as_array).into_iter().flatten() {
                let (mut before, after) = wrapping(inner, n_tokens)?;
                before.append(&mut prefix);
                prefix = before;
                suffix.extend(after);
            }
        }
        Some("TemplateProcessing") => {
            let mut is_before = true;
            for piece in processor.get("single").and_then(Value::as_array).into_iter().flatten() {
                let Some(name) = piece.pointer("/SpecialToken/id").and_then(Value::as_str) else {
                    is_before = false;
                    continue;
                };
                let token = processor.get("special_tokens").and_then(|tokens| tokens.get(name)?.get("ids")?.as_array());
                let ids =
                    token.ok_or_else(|| Error::malformed(format!("the post-processor does not define {name:?}")))?;
                for id in ids {
                    if is_before { &mut prefix } else { &mut suffix }.push(token_id(id, n_tokens)?);
                }
            }
        }
        Some("BertProcessing" | "RobertaProcessing") => {
            prefix.push(token_id(processor.pointer("/cls/1").unwrap_or(&Value::Null), n_tokens)?);
            suffix.push(token_id(processor.pointer("/sep/1").unwrap_or(&Value::Null), n_tokens)?);
        }
        // A byte-level one only trims offsets.
        None | Some("ByteLevel") => {}
        Some(other) => return Err(Error::unsupported(format!("the post-processor {other} is not supported"))),
    }
    Ok((prefix, suffix))
}

fn token_id(id: &Value, n_tokens: usize) -> Result<u32> {
    let found = id.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|&id| (id as usize) < n_tokens);
    found.ok_or_else(|| {
        Error::malformed(format!("the post-processor should name one of the {n_tokens} tokens by its id; found {id}"))
    })
}

/// The decoding that equals the file's decoder.
fn decoding(Described(described): &Described) -> Decoding {
    let mut parts = Vec::new();
    flatten(described, &mut parts);
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
