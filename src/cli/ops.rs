//! `ops`: the operators, and the backends that run them. A backend runs every operator of the table: a graph is never
//! refused for one.

use hanzo_edge::backend::BACKENDS;
use hanzo_edge::error::Result;
use hanzo_edge::ops::OPS;
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
    let backends: Vec<&str> = BACKENDS.iter().map(|row| row.name).collect();
    if args.json {
        let row = |op: &hanzo_edge::ops::OpRow| json!({ "name": op.name, "summary": op.summary, "backends": backends });
        return output::json(&json!({ "ops": OPS.iter().map(row).collect::<Vec<_>>() }));
    }
    let head = [&["op"], backends.as_slice(), &["what it computes"]].concat();
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for op in OPS {
        let marks = vec!["yes"; backends.len()];
        rows.push([&[op.name], marks.as_slice(), &[op.summary]].concat().into_iter().map(str::to_owned).collect());
    }
    output::table(&rows)
}
