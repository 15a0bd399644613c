//! An answer as it is made: pieces to standard output, the result at the end.

use futures::StreamExt;
use futures::executor::block_on;
use hanzo_edge::engine::TokenStream;
use hanzo_edge::error::{Error, Result};
use hanzo_edge::generate::{GenerateResult, Stats};
use serde_json::{Value, json};

use crate::{interrupt, output};

/// Runs an answer to its end, or to Ctrl-C; prints the pieces when `shows`.
///
/// # Errors
/// What the engine reports.
pub fn follow(mut stream: TokenStream, shows: bool) -> Result<GenerateResult> {
    interrupt::watch(stream.abort_flag());
    while let Some(piece) = block_on(stream.next()) {
        if shows {
            output::write(&piece?)?;
        } else {
            piece?;
        }
    }
    interrupt::unwatch();
    let result = stream.result().cloned();
    result.ok_or_else(|| Error::internal("the answer ended without a result"))
}

/// Statistics with the names of the command line's JSON.
pub fn stats_json(stats: &Stats) -> Value {
    json!({
        "time_to_first_token_ms": stats.time_to_first_token_ms,
        "prompt_ms": stats.prompt_ms,
        "decode_ms": stats.decode_ms,
        "prompt_tokens_per_second": stats.prompt_tokens_per_second,
        "decode_tokens_per_second": stats.decode_tokens_per_second,
        "backend": stats.backend,
        "threads": stats.threads,
        "drafted_tokens": stats.drafted_tokens,
        "accepted_tokens": stats.accepted_tokens,
    })
}

/// A line about speed, for standard error.
pub fn summary(result: &GenerateResult) -> String {
    let (stats, usage) = (&result.stats, &result.usage);
    format!(
        "[{}: {} prompt tokens at {:.1}/s, {} tokens at {:.1}/s, {}]",
        stats.backend,
        usage.prompt_tokens - usage.cached_tokens,
        stats.prompt_tokens_per_second,
        usage.completion_tokens,
        stats.decode_tokens_per_second,
        result.finish_reason.name()
    )
}
