//! `models`: the registry's table, and what of it is on this machine.

use hanzo_edge::error::Result;
use hanzo_edge::registry;
use serde_json::json;

use crate::output;

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let mut rows = vec![["name", "title", "weights", "size", "licence", "here"].map(str::to_owned).to_vec()];
    let mut list = Vec::new();
    for entry in registry::models() {
        let path = registry::cached(entry)?;
        list.push(json!({
            "name": entry.name,
            "title": entry.title,
            "architecture": entry.architecture,
            "quantization": entry.quantization,
            "license": entry.license,
            "bytes": entry.bytes,
            "path": path,
        }));
        rows.push(vec![
            entry.name.clone(),
            entry.title.clone(),
            entry.quantization.clone(),
            output::bytes(entry.bytes),
            entry.license.clone(),
            if path.is_some() { "yes" } else { "no" }.to_owned(),
        ]);
    }
    if args.json { output::json(&json!({ "models": list })) } else { output::table(&rows) }
}
