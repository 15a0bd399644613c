//! `logits`: the highest logits after a sequence of tokens.

use hanzo_edge::backend::sampling;
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
    /// How many to print
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    #[command(flatten)]
    load: LoadArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let edge = model::load(Some(&args.model), args.load.config())?;
    let logits = edge.logits(&args.tokens.0)?;
    let top = sampling::top(&logits, args.top);
    if args.load.json {
        return output::json(&json!({ "top": top }));
    }
    top.iter().try_for_each(|(id, logit)| output::line(format!("{id} {logit}")))
}
