//! How much context fits: the least of the model's, the user's wish and what memory allows; and how much of the rest is
//! for copies of it.

use crate::backend::{KvType, MemoryUse};
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

/// The fewest tokens that a user would take who wishes for `wish`; 0 is no wish.
pub fn least_context(file: &ModelFile, wish: usize) -> Result<usize> {
    let most = Hparams::read(file)?.context_length;
    Ok(if wish > 0 { wish } else { LEAST_CONTEXT.min(most) })
}

/// Tokens that the key/value caches will hold beside `weight_bytes` of weights. An explicit wish that the model or memory
/// cannot meet is an error; the default shrinks.
pub fn fit(file: &ModelFile, weight_bytes: u64, budget: &Budget, kv_type: KvType) -> Result<usize> {
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
    let room = budget.memory.saturating_sub(weight_bytes) / token_bytes.max(1);
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(wish);
    let least = least_context(file, budget.context)?;
    if room < least {
        let needed = weight_bytes.saturating_add(token_bytes.saturating_mul(least as u64));
        return Err(Error::out_of_memory(format!(
            "maxMemoryBytes: expected at least {needed} for the weights and {least} tokens, found {}",
            budget.memory
        )));
    }
    Ok(room)
}

/// Bytes for copies of sequences that left the caches: the user's wish, else as many as the caches take, but never more
/// than the limit `memory` (0 is none) leaves beside what is in use.
pub fn prefix_budget(wish: Option<u64>, memory: u64, used: MemoryUse) -> u64 {
    let rest = match memory {
        0 => u64::MAX,
        memory => memory.saturating_sub(used.weights_bytes + used.kv_bytes),
    };
    wish.unwrap_or(used.kv_bytes).min(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_as_much_as_the_caches_unless_the_limit_or_the_user_says_less() {
        let used = MemoryUse { weights_bytes: 100, kv_bytes: 40, ..MemoryUse::default() };
        assert_eq!(prefix_budget(None, 0, used), 40);
        assert_eq!(prefix_budget(None, 170, used), 30);
        assert_eq!(prefix_budget(None, 120, used), 0);
        assert_eq!(prefix_budget(Some(0), 0, used), 0);
        assert_eq!(prefix_budget(Some(90), 0, used), 90);
        assert_eq!(prefix_budget(Some(90), 200, used), 60);
    }
}
