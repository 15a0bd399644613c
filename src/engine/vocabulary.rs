//! From a GGUF-style set of metadata keys to the tokenizer's plain vocabulary. Array types are checked by the
//! metadata's accessors, values and lengths by `text`.

use crate::error::Result;
use crate::format::Metadata;
use crate::text::Vocabulary;

const MODEL: &str = "tokenizer.ggml.model";
const TOKENS: &str = "tokenizer.ggml.tokens";
const SCORES: &str = "tokenizer.ggml.scores";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";

/// Takes the vocabulary out of the metadata, leaving the rest; `None` where the file has no tokenizer.
pub fn take(metadata: &mut Metadata) -> Result<Option<Vocabulary>> {
    let Some(tokens) = metadata.get_strings(TOKENS)? else { return Ok(None) };
    let id = |name: &str| metadata.get::<u32>(&format!("tokenizer.ggml.{name}_token_id"));
    let flag = |name: &str| metadata.get::<bool>(&format!("tokenizer.ggml.{name}"));
    let vocabulary = Vocabulary {
        model: metadata.require::<&str>(MODEL)?.to_owned(),
        pre: metadata.get::<&str>("tokenizer.ggml.pre")?.map(str::to_owned),
        tokens,
        scores: metadata.get::<&[f32]>(SCORES)?.map(<[f32]>::to_vec),
        types: metadata.get::<&[i32]>(TYPES)?.map(<[i32]>::to_vec),
        merges: metadata.get_strings(MERGES)?,
        bos: id("bos")?,
        eos: id("eos")?,
        eot: id("eot")?,
        unknown: id("unknown")?,
        padding: id("padding")?,
        add_bos: flag("add_bos_token")?,
        add_eos: flag("add_eos_token")?,
        add_space_prefix: flag("add_space_prefix")?,
    };
    for key in [TOKENS, SCORES, TYPES, MERGES] {
        metadata.forget(key);
    }
    Ok(Some(vocabulary))
}
