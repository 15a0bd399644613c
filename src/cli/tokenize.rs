//! `tokenize`: the ids of each line of standard input; control tokens are parsed, none is added.

use std::io::{BufRead, stdin};

use hanzo_edge::error::{Error, Result};
use serde_json::json;

use crate::args::LoadArgs;
use crate::{model, output};

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// Registry name, path or URL
    model: String,
    #[command(flatten)]
    load: LoadArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let edge = model::load(Some(&args.model), args.load.config())?;
    let mut all = Vec::new();
    for line in stdin().lock().lines() {
        let line = line.map_err(|error| Error::invalid_argument(format!("standard input: expected text, {error}")))?;
        let ids = edge.tokenize(&line)?;
        if args.load.json {
            all.push(ids);
        } else {
            output::line(ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))?;
        }
    }
    if args.load.json { output::json(&json!({ "ids": all })) } else { Ok(()) }
}
