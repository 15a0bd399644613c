//! `perplexity`: of a text in windows without overlap and without a beginning-of-text token; the second half of each
//! window is scored, so that every scored token has at least half a window before it.

use std::path::PathBuf;

use hanzo_edge::error::{Error, Result};
use serde_json::json;

use crate::args::LoadArgs;
use crate::{model, output};

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// Registry name, path or URL
    model: String,
    /// A text file
    file: PathBuf,
    /// Tokens of a window
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = parse_window)]
    context: usize,
    #[command(flatten)]
    load: LoadArgs,
}

fn parse_window(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|&count| count >= 4).ok_or_else(|| "expected a number from 4".to_owned())
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let text = std::fs::read_to_string(&args.file);
    let text = text.map_err(|error| Error::not_found(format!("{}: {error}", args.file.display())))?;
    let mut config = args.load.config();
    if args.load.context_tokens.is_none() {
        config.max_context_tokens = args.context;
    }
    let edge = model::load(Some(&args.model), config)?;
    let ids = edge.tokenize(&text)?;
    if ids.len() < args.context {
        let (expected, found) = (args.context, ids.len());
        return Err(Error::invalid_argument(format!("expected a text of at least {expected} tokens, found {found}")));
    }
    let (mut n_tokens, mut sum) = (0usize, 0.0f64);
    let n_windows = ids.len() / args.context;
    for (index, window) in ids.chunks_exact(args.context).enumerate() {
        let score = edge.score(window)?;
        let scored = score.logprob.get(args.context / 2..).unwrap_or_default();
        n_tokens += scored.len();
        sum += scored.iter().map(|&logprob| f64::from(logprob)).sum::<f64>();
        eprintln!("window {} of {n_windows}: {:.4}", index + 1, perplexity(sum, n_tokens));
    }
    let ppl = perplexity(sum, n_tokens);
    if args.load.json {
        return output::json(&json!({ "tokens": n_tokens, "ppl": ppl }));
    }
    output::line(format!("perplexity {ppl:.4} over {n_tokens} tokens"))
}

fn perplexity(sum: f64, n_tokens: usize) -> f64 {
    (-sum / n_tokens as f64).exp()
}
