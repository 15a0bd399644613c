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
    /// Tokens of a window; 512 unless this or -c says otherwise
    #[arg(long, value_name = "N", value_parser = parse_window)]
    context: Option<usize>,
    #[command(flatten)]
    load: LoadArgs,
}

/// Below this the second half of a window has nothing to score.
const LEAST_WINDOW: usize = 4;

fn parse_window(text: &str) -> std::result::Result<usize, String> {
    let window = text.parse().ok().filter(|&count| count >= LEAST_WINDOW);
    window.ok_or_else(|| format!("expected a number from {LEAST_WINDOW}"))
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let text = std::fs::read_to_string(&args.file);
    let text = text.map_err(|error| Error::not_found(format!("{}: {error}", args.file.display())))?;
    let window = args.context.or(args.load.context_tokens).unwrap_or(512).max(LEAST_WINDOW);
    let mut config = args.load.config();
    config.max_context_tokens = config.max_context_tokens.max(window);
    let edge = model::load(Some(&args.model), config)?;
    let ids = edge.tokenize(&text)?;
    if ids.len() < window {
        let found = ids.len();
        return Err(Error::invalid_argument(format!("expected a text of at least {window} tokens, found {found}")));
    }
    let (mut n_tokens, mut sum) = (0usize, 0.0f64);
    let n_windows = ids.len() / window;
    for (index, tokens) in ids.chunks_exact(window).enumerate() {
        let score = edge.score(tokens)?;
        let scored = score.logprob.get(window / 2..).unwrap_or_default();
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
