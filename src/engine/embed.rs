//! From texts to the sequences that are embedded, and from options and the file's facts to the form of the vectors. Knows
//! no device.

use super::model::ModelInfo;
use super::text::Text;
use crate::error::{Error, Result};
use crate::generate::{Embedding, Pooling, VectorForm};

/// Options of [`Edge::embed`](super::Edge::embed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbedOptions {
    /// How the states of a text's tokens become a vector; `None` is as the file says, else the last token's.
    pub pooling: Option<Pooling>,
    /// Whether vectors are scaled to length 1.
    pub normalize: bool,
    /// Leading elements of a vector that are kept, before it is scaled; all when `None`.
    pub dimensions: Option<u32>,
    /// Whether a text that is longer than the context is cut at its end; otherwise it is an error.
    pub truncate: bool,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self { pooling: None, normalize: true, dimensions: None, truncate: false }
    }
}

/// What is to be embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedInput {
    /// A text: gets what the file puts before and after one.
    Text(String),
    /// Token ids, taken as they are.
    Tokens(Vec<u32>),
}

/// Makes inputs ready.
///
/// # Errors
/// `invalid-argument` for an empty input, an id outside the vocabulary or an option out of range; `context-overflow` for
/// an input that is too long; `unsupported-model` where there is text but no tokenizer, or the file's pooling is unknown.
pub fn prepare(text: &Text, info: &ModelInfo, inputs: &[EmbedInput], options: &EmbedOptions) -> Result<Embedding> {
    let form = VectorForm {
        pooling: pooling(info, options)?,
        dimensions: dimensions(info, options)?,
        normalize: options.normalize,
    };
    let sequence = |(index, input)| {
        sequence(text, info, input, options.truncate).map_err(|error| error.at(format!("input[{index}]")))
    };
    let sequences = inputs.iter().enumerate().map(sequence).collect::<Result<_>>()?;
    Ok(Embedding::new(sequences, form))
}

/// The numbers are llama.cpp's. That a file pools nothing is said of what it was made for, not of what it can do.
fn pooling(info: &ModelInfo, options: &EmbedOptions) -> Result<Pooling> {
    match (options.pooling, info.pooling_type) {
        (Some(pooling), _) => Ok(pooling),
        (None, None | Some(-1 | 0 | 3)) => Ok(Pooling::Last),
        (None, Some(1)) => Ok(Pooling::Mean),
        (None, Some(2)) => Ok(Pooling::Cls),
        (None, Some(other)) => {
            let message = format!(
                "expected a pooling type of 0 to 3 in the file, found {other}; the option pooling names another"
            );
            Err(Error::unsupported(message))
        }
    }
}

fn dimensions(info: &ModelInfo, options: &EmbedOptions) -> Result<usize> {
    let most = info.hparams.hidden_size;
    match options.dimensions.map(|dimensions| dimensions as usize) {
        None => Ok(most),
        Some(dimensions) if (1..=most).contains(&dimensions) => Ok(dimensions),
        Some(other) => Err(Error::invalid_argument(format!("expected 1 to {most}, found {other}")).at("dimensions")),
    }
}

fn sequence(text: &Text, info: &ModelInfo, input: &EmbedInput, truncate: bool) -> Result<Vec<u32>> {
    let (mut ids, n_after) = match input {
        EmbedInput::Text(words) if words.is_empty() => (Vec::new(), 0),
        EmbedInput::Text(words) => {
            let tokenizer = text.tokenizer()?;
            (tokenizer.encode_wrapped(words)?, tokenizer.suffix().len())
        }
        EmbedInput::Tokens(ids) => (ids.clone(), 0),
    };
    let (capacity, found) = (info.capacity, ids.len());
    if ids.is_empty() {
        return Err(Error::invalid_argument("expected at least one token, found an empty input"));
    }
    if found > capacity && truncate {
        // The end that the file asks for stays: the last token's states may be the vector.
        let end = found.saturating_sub(n_after);
        ids.drain(capacity.saturating_sub(n_after).min(end)..end);
    } else if found > capacity {
        return Err(Error::context_overflow(format!(
            "expected at most {capacity} tokens, which the context holds, found {found}"
        )));
    }
    info.check_ids(&ids)?;
    Ok(ids)
}
