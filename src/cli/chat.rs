//! `chat`: one question with `-p`, else a conversation on the terminal.

use std::io::{BufRead, IsTerminal, stdin};

use hanzo_edge::engine::{ChatOptions, Edge, Message};
use hanzo_edge::error::{Error, Result};
use serde_json::json;

use crate::args::{LoadArgs, SampleArgs};
use crate::{interrupt, model, output, stream};

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// Registry name, path or URL; the registry's default unless given
    model: Option<String>,
    /// The question; without it, the chat is interactive
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Instructions to the model
    #[arg(long, visible_alias = "sys", value_name = "TEXT", allow_hyphen_values = true)]
    system: Option<String>,
    /// A file with a Jinja chat template instead of the model's own
    #[arg(long, value_name = "FILE")]
    chat_template: Option<std::path::PathBuf>,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    sample: SampleArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let mut config = args.load.config();
    if let Some(path) = &args.chat_template {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| Error::not_found(format!("{}: {error}", path.display())))?;
        config.chat_template = Some(text);
    }
    let options = ChatOptions { generate: args.sample.options(), ..ChatOptions::default() };
    let mut messages: Vec<Message> = args.system.map(Message::system).into_iter().collect();
    let edge = model::load(args.model.as_deref(), config)?;
    interrupt::install()?;
    match args.prompt {
        Some(prompt) => {
            messages.push(Message::user(prompt));
            answer(&edge, messages, &options, args.load.json).map(drop)
        }
        None => converse(&edge, messages, &options, args.load.json),
    }
}

/// Answers the conversation and prints the answer.
fn answer(edge: &Edge, messages: Vec<Message>, options: &ChatOptions, as_json: bool) -> Result<String> {
    let result = stream::follow(edge.chat_with(messages, options.clone())?, !as_json)?;
    if as_json {
        output::json(&json!({
            "text": result.text,
            "ids": result.tokens,
            "finish_reason": result.finish_reason.name(),
            "usage": {
                "prompt_tokens": result.usage.prompt_tokens,
                "completion_tokens": result.usage.completion_tokens,
                "cached_tokens": result.usage.cached_tokens,
            },
            "stats": stream::stats_json(&result.stats),
        }))?;
    } else {
        output::write("\n")?;
        eprintln!("{}", stream::summary(&result));
    }
    Ok(result.text)
}

/// Reads a line, answers, and again, until the input ends. A line that does not fit the context is reported, and the
/// conversation goes on without it.
fn converse(edge: &Edge, mut messages: Vec<Message>, options: &ChatOptions, as_json: bool) -> Result<()> {
    let is_terminal = stdin().is_terminal();
    let mut lines = stdin().lock().lines();
    loop {
        if is_terminal {
            eprint!("> ");
        }
        let Some(line) = lines.next() else { return Ok(()) };
        let line = line.map_err(|error| Error::invalid_argument(format!("standard input: expected text, {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        messages.push(Message::user(line));
        match answer(edge, messages.clone(), options, as_json) {
            Ok(text) => messages.push(Message::assistant(text)),
            Err(error) if is_terminal => {
                messages.pop();
                eprintln!("error: {}", output::one_line(&error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
}
