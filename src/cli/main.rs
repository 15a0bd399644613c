//! The command line program: a thin face over the public crate. One file per command; `--help` lists them.

mod args;
mod bench;
mod chat;
mod embed;
mod generate;
mod inspect;
mod interrupt;
mod logits;
mod machine;
mod model;
mod models;
mod ops;
mod output;
mod perplexity;
mod progress;
mod pull;
mod score;
mod stream;
mod tokenize;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hanzo_edge::error::{ErrorKind, Result};

/// Language models on this machine.
#[derive(Parser)]
#[command(name = "hanzo-edge", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Chat with a model; interactive without -p
    Chat(chat::Args),
    /// Continue a text, without a chat template
    Generate(generate::Args),
    /// Turn texts into vectors
    Embed(embed::Args),
    /// Print the token ids of each line of standard input
    Tokenize(tokenize::Args),
    /// Print the highest logits after a sequence of tokens
    Logits(logits::Args),
    /// Score a sequence of tokens, each given those before it
    Score(score::Args),
    /// Measure the perplexity of a text file
    Perplexity(perplexity::Args),
    /// Measure speed and memory
    Bench(bench::Args),
    /// Show what is in a model file
    Inspect(inspect::Args),
    /// List the registry's models
    Models(models::Args),
    /// Download a registry model
    Pull(pull::Args),
    /// List the operators and the backends that run them
    Ops(ops::Args),
}

fn main() -> ExitCode {
    // Exits with 2 on bad usage.
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", output::one_line(&error.to_string()));
            ExitCode::from(if error.kind() == ErrorKind::InvalidArgument { 2 } else { 1 })
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Chat(args) => chat::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Embed(args) => embed::run(args),
        Command::Tokenize(args) => tokenize::run(args),
        Command::Logits(args) => logits::run(args),
        Command::Score(args) => score::run(args),
        Command::Perplexity(args) => perplexity::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Models(args) => models::run(args),
        Command::Pull(args) => pull::run(args),
        Command::Ops(args) => ops::run(args),
    }
}
