//! How much context fits: the least of the model's, the user's wish and what memory allows.

use crate::backend::KvType;
use crate::error::{Error, Result};
use crate::format::ModelFile;
use crate::models::Hparams;

/// Context where the user names none.
const DEFAULT_CONTEXT: usize = 4096;
/// The least context worth loading a model for.
const LEAST_CONTEXT: usize = 256;

/// The user's limits; 0 is none.
pub struct Budget {
    /// Tokens of context.
    pub context: usize,
    /// Bytes for weights and caches.
    pub memory: u64,
}

/// Tokens that the key/value caches will hold. An explicit wish that the model or memory cannot meet is an error;
/// the default shrinks.
pub fn fit(file: &ModelFile, budget: &Budget, kv_type: KvType) -> Result<usize> {
    let hparams = Hparams::read(file)?;
    let most = hparams.context_length;
    if budget.context > most {
        let wish = budget.context;
        return Err(Error::invalid_argument(format!(
            "maxContextTokens: expected at most the model's {most}, found {wish}"
        )));
    }
    let wish = if budget.context > 0 { budget.context } else { most.min(DEFAULT_CONTEXT) };
    if budget.memory == 0 {
        return Ok(wish);
    }
    let sizes = [2, hparams.n_layers, hparams.n_kv_heads, kv_type.row_bytes(hparams.head_dim)];
    let token_bytes = sizes.iter().fold(1u64, |product, &size| product.saturating_mul(size as u64));
    let room = budget.memory.saturating_sub(file.weight_bytes()) / token_bytes.max(1);
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(wish);
    let least = if budget.context > 0 { budget.context } else { LEAST_CONTEXT.min(wish) };
    if room < least {
        let needed = file.weight_bytes().saturating_add(token_bytes.saturating_mul(least as u64));
        return Err(Error::out_of_memory(format!(
            "maxMemoryBytes: expected at least {needed} for the weights and {least} tokens, found {}",
            budget.memory
        )));
    }
    Ok(room)
}
