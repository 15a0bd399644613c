//! `score`: how likely each token of a sequence is, given those before it.

use hanzo_edge::error::Result;
use serde_json::json;

use crate::args::{LoadArgs, Tokens};
use crate::{model, output};

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// Registry name, path or URL
    model: String,
    /// Token ids, separated by commas
    #[arg(long, value_name = "IDS")]
    tokens: Tokens,
    #[command(flatten)]
    load: LoadArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let edge = model::load(Some(&args.model), args.load.config())?;
    let score = edge.score(&args.tokens.0)?;
    if args.load.json {
        return output::json(&json!({ "argmax": score.argmax, "logprob": score.logprob }));
    }
    let mut rows = vec![["token", "logprob", "argmax of the next"].map(str::to_owned).to_vec()];
    for (index, (token, argmax)) in args.tokens.0.iter().zip(&score.argmax).enumerate() {
        let logprob = index.checked_sub(1).and_then(|before| score.logprob.get(before));
        rows.push(vec![
            token.to_string(),
            logprob.map_or_else(String::new, |logprob| format!("{logprob:.4}")),
            argmax.to_string(),
        ]);
    }
    output::table(&rows)
}
