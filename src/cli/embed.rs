//! `embed`: texts as vectors.

use std::io::{BufRead, stdin};
use std::str::FromStr;

use hanzo_edge::error::{Error, Result};
use hanzo_edge::{EmbedOptions, Pooling};
use serde_json::{Value, json};

use crate::args::LoadArgs;
use crate::{model, output};

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// Registry name, path or URL
    model: String,
    /// A text; may be given several times. Without one, each line of standard input is a text
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Vec<String>,
    /// How a text's tokens become a vector: none, mean, cls, last; as the file says unless given, else last
    #[arg(long, value_name = "NAME", value_parser = Pooling::from_str)]
    pooling: Option<Pooling>,
    /// 2 scales vectors to length 1, -1 leaves them as they are
    #[arg(long, visible_alias = "embd-normalize", value_name = "N", default_value_t = 2, allow_negative_numbers = true,
          value_parser = normalization)]
    normalize: i8,
    /// Leading elements of a vector that are kept; all unless given
    #[arg(long, value_name = "N")]
    dimensions: Option<u32>,
    /// Cut texts that are longer than the context at their end
    #[arg(long)]
    truncate: bool,
    #[command(flatten)]
    load: LoadArgs,
}

fn normalization(text: &str) -> Result<i8, String> {
    match text {
        "2" => Ok(2),
        "-1" => Ok(-1),
        _ => Err(format!("expected 2 or -1, found {text:?}")),
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let options = EmbedOptions {
        pooling: args.pooling,
        normalize: args.normalize == 2,
        dimensions: args.dimensions,
        truncate: args.truncate,
    };
    let edge = model::load(Some(&args.model), args.load.config())?;
    let texts = if args.prompt.is_empty() { lines()? } else { args.prompt };
    let vectors = edge.embed(&texts, &options)?;
    if args.load.json {
        let entry = |(index, vector)| json!({ "object": "embedding", "index": index, "embedding": vector });
        let data: Vec<Value> = vectors.iter().enumerate().map(entry).collect();
        return output::json(&json!({ "object": "list", "data": data }));
    }
    let line = |vector: &Vec<f32>| vector.iter().map(f32::to_string).collect::<Vec<_>>().join(" ");
    vectors.iter().try_for_each(|vector| output::line(line(vector)))
}

fn lines() -> Result<Vec<String>> {
    let lines = stdin().lock().lines().collect::<std::io::Result<_>>();
    lines.map_err(|error| Error::invalid_argument(format!("standard input: expected text, {error}")))
}
