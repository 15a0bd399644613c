//! `pull`: downloads a registry model and verifies it; prints where it is.

use hanzo_edge::error::Result;
use hanzo_edge::registry;
use serde_json::json;

use crate::output;
use crate::progress::Bar;

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// A name that `models` lists
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let mut bar = Bar::new();
    let path = registry::pull(&args.name, &mut |progress| bar.show(progress))?;
    drop(bar);
    if args.json {
        return output::json(&json!({ "name": args.name, "path": path }));
    }
    output::line(path.display().to_string())
}
