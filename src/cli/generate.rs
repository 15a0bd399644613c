//! `generate`: continues a text, greedily unless told otherwise.

use hanzo_edge::error::Result;
use hanzo_edge::generate::GenerateOptions;
use serde_json::json;

use crate::args::{LoadArgs, SampleArgs};
use crate::{interrupt, model, output, stream};

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// Registry name, path or URL
    model: String,
    /// The text to continue
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: String,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    sample: SampleArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let options = args.sample.options();
    let options = GenerateOptions { temperature: options.temperature.or(Some(0.0)), ..options };
    let edge = model::load(Some(&args.model), args.load.config())?;
    interrupt::install()?;
    let prompt_ids = edge.prompt_ids(&args.prompt)?;
    let answer = stream::follow(edge.complete_tokens(prompt_ids.clone(), options)?, !args.load.json)?;
    if !args.load.json {
        output::write("\n")?;
        eprintln!("{}", stream::summary(&answer));
        return Ok(());
    }
    output::json(&json!({
        "prompt_ids": prompt_ids,
        "ids": answer.tokens,
        "text": answer.text,
        "finish_reason": answer.finish_reason.name(),
        "stats": stream::stats_json(&answer.stats),
    }))
}
