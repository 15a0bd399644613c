//! `bench`: medians over runs on random tokens, which need no tokenizer.

use std::time::Instant;

use hanzo_edge::backend::{KernelTime, STREAM};
use hanzo_edge::engine::Edge;
use hanzo_edge::error::Result;
use hanzo_edge::generate::{GenerateOptions, GenerateResult};
use serde_json::{Value, json};

use crate::args::LoadArgs;
use crate::{machine, model, output, stream};

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// Registry name, path or URL
    model: String,
    /// Tokens of the prompt
    #[arg(short, long, visible_alias = "n-prompt", default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    prompt: u32,
    /// Tokens to decode
    #[arg(short = 'n', long, visible_alias = "n-gen", default_value_t = 128, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    decode: u32,
    /// Tokens in the context before the prompt
    #[arg(short, long, visible_alias = "n-depth", default_value_t = 0, value_name = "N")]
    depth: u32,
    /// How often to measure
    #[arg(short, long, visible_alias = "repetitions", default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    reps: u16,
    /// Measure each kernel in a run of its own
    #[arg(long)]
    profile: bool,
    #[command(flatten)]
    load: LoadArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let mut config = args.load.config();
    if args.load.context_tokens.is_none() {
        config.max_context_tokens = (args.depth + args.prompt + args.decode) as usize;
    }
    // No prompt comes again, so copies of earlier ones would only take time.
    config.prefix_cache_bytes = Some(0);
    let path = model::resolve(Some(&args.model))?;
    let begin = Instant::now();
    let edge = model::open(path, config)?;
    let load_ms = begin.elapsed().as_secs_f64() * 1e3;
    let vocab_size = edge.info()?.hparams.vocab_size as u32;
    let runs = Runs { edge: &edge, args: &args, vocab_size };
    // The first run compiles and warms what later ones find ready; it also fills the context up to the depth.
    runs.run(0, args.decode.min(2))?;
    let mut results = Vec::new();
    for rep in 1..=args.reps {
        let result = runs.run(u32::from(rep), args.decode)?;
        eprintln!("run {rep} of {}: {}", args.reps, stream::summary(&result));
        results.push(result);
    }
    let profile = if args.profile { Some(profile(&runs)?) } else { None };
    let figures = figures(&edge, &results, load_ms, profile.as_ref())?;
    if args.load.json { output::json(&figures) } else { print(&figures) }
}

/// Times of the kernels, those of the prompt apart from those of decoding.
struct Profiles {
    prompt: Vec<KernelTime>,
    decode: Vec<KernelTime>,
}

/// Measures each kernel in runs of their own: first the prompt, then the answer to it while the cache holds it.
fn profile(runs: &Runs<'_>) -> Result<Profiles> {
    let number = u32::from(runs.args.reps) + 1;
    runs.edge.profile(true)?;
    runs.run(number, 0)?;
    let prompt = runs.edge.profile(false)?;
    runs.edge.profile(true)?;
    runs.run(number, runs.args.decode)?;
    Ok(Profiles { prompt, decode: runs.edge.profile(false)? })
}

/// The kernels of a phase as rows: time, rate, share of what the memory gives, share of the phase's time.
fn rows_of(phase: &str, times: &[KernelTime]) -> Vec<Value> {
    let rate = |time: &KernelTime| if time.us > 0.0 { time.bytes as f64 / time.us / 1e3 } else { 0.0 };
    let stream = times.iter().find(|time| time.kernel == STREAM).map(rate).filter(|rate| *rate > 0.0);
    let kernels = || times.iter().filter(|time| time.kernel != STREAM);
    let whole: f64 = kernels().map(|time| time.us).sum();
    let row = |time: &KernelTime| {
        json!({
            "phase": phase, "kernel": time.kernel, "calls": time.calls, "us": time.us, "bytes": time.bytes,
            "us_per_call": time.us / time.calls.max(1) as f64,
            "gb_per_second": rate(time),
            "stream_share": stream.filter(|_| time.bytes > 0).map(|stream| rate(time) / stream),
            "time_share": if whole > 0.0 { time.us / whole } else { 0.0 },
        })
    };
    kernels().map(row).collect()
}

struct Runs<'a> {
    edge: &'a Edge,
    args: &'a Args,
    vocab_size: u32,
}

impl Runs<'_> {
    /// One run. Prompts differ from their first token on, so that nothing of one is reused for the next; what is
    /// before them, up to the depth, is the same and stays in the cache.
    fn run(&self, number: u32, decode: u32) -> Result<GenerateResult> {
        let mut tokens: Vec<u32> = (0..self.args.depth).map(|place| self.token(0, place)).collect();
        if number == 0 && !tokens.is_empty() {
            self.complete(tokens.clone(), 0)?;
        }
        tokens.push(number % self.vocab_size);
        tokens.extend((1..self.args.prompt).map(|place| self.token(number + 1, place)));
        self.complete(tokens, decode)
    }

    fn complete(&self, tokens: Vec<u32>, decode: u32) -> Result<GenerateResult> {
        let options = GenerateOptions {
            max_tokens: Some(decode),
            temperature: Some(0.0),
            ignore_end: true,
            ..GenerateOptions::default()
        };
        stream::follow(self.edge.complete_tokens(tokens, options)?, false)
    }

    /// A token that looks random and is the same in every run of the program.
    fn token(&self, number: u32, place: u32) -> u32 {
        (hanzo_edge::backend::uniform(number, place) * self.vocab_size as f32) as u32 % self.vocab_size
    }
}

fn figures(edge: &Edge, results: &[GenerateResult], load_ms: f64, profile: Option<&Profiles>) -> Result<Value> {
    let (info, memory, report) = (edge.info()?, edge.memory()?, edge.diagnostics()?.report);
    let median_of = |figure: fn(&GenerateResult) -> f64| median(results.iter().map(figure).collect());
    let decode_rate = median_of(|result| result.stats.decode_tokens_per_second);
    let held = memory.weights_bytes + memory.kv_bytes + memory.scratch_bytes;
    let stream_rate = match memory.gpu_bytes {
        0 => Some(machine::stream_gb_per_second(report.threads)),
        _ => gpu_stream_gb_per_second(edge),
    };
    let used = decode_rate * info.weights.bytes as f64 / 1e9;
    let kernels = match profile {
        Some(profile) => {
            let mut rows = rows_of("decode", &profile.decode);
            rows.extend(rows_of("prompt", &profile.prompt));
            Value::Array(rows)
        }
        None => report
            .variants
            .iter()
            .map(|(class, kernel)| (class.clone(), json!(kernel)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    };
    Ok(json!({
        "prompt_tokens_per_second": median_of(|result| result.stats.prompt_tokens_per_second),
        "decode_tokens_per_second": decode_rate,
        "time_to_first_token_ms": median_of(|result| result.stats.time_to_first_token_ms),
        "load_ms": load_ms,
        "peak_bytes": machine::peak_resident_bytes().unwrap_or(0).max(held),
        "weight_bytes": info.weights.bytes,
        "stream_gb_per_second": stream_rate,
        "roofline_fraction": stream_rate.map(|rate| used / rate),
        "dispatches_per_token": report.dispatches_per_token,
        "device": format!("{}: {}", info.backend, report.device),
        "kernels": kernels,
    }))
}

/// What a GPU's memory gives, as the start of a profile measures it; `None` where the device cannot measure.
fn gpu_stream_gb_per_second(edge: &Edge) -> Option<f64> {
    edge.profile(true).ok()?;
    let times = edge.profile(false).ok()?;
    let stream = times.iter().find(|time| time.kernel == STREAM && time.us > 0.0)?;
    Some(stream.bytes as f64 / stream.us / 1e3)
}

/// The middle value, or the mean of the two in the middle; 0 for none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = |index: usize| values.get(index).copied().unwrap_or(0.0);
    (middle(values.len().saturating_sub(1) / 2) + middle(values.len() / 2)) / 2.0
}

/// The figures for people, one a line.
fn print(figures: &Value) -> Result<()> {
    let Value::Object(figures) = figures else { return Ok(()) };
    let mut rows = Vec::new();
    for (name, value) in figures {
        match value {
            Value::Object(map) => {
                rows.extend(map.iter().map(|(class, kernel)| vec![format!("{name}.{class}"), plain(kernel)]))
            }
            Value::Array(list) => rows.extend(
                list.iter()
                    .map(|time| vec![format!("{}.{}", plain(&time["phase"]), plain(&time["kernel"])), cost(time)]),
            ),
            value => rows.push(vec![name.clone(), plain(value)]),
        }
    }
    output::table(&rows)
}

fn cost(time: &Value) -> String {
    let figure = |name: &str| time[name].as_f64().unwrap_or(0.0);
    let memory = match time["stream_share"].as_f64() {
        Some(share) => format!("{:.0} GB/s ({:.0} % of stream)", figure("gb_per_second"), share * 100.0),
        None => String::new(),
    };
    format!(
        "{:.1} us x {}, {:.1} % of the time{}{memory}",
        figure("us_per_call"),
        time["calls"],
        figure("time_share") * 100.0,
        if memory.is_empty() { "" } else { ", " }
    )
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "unknown".to_owned(),
        Value::Number(number) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or(0.0)),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![7.0]), 7.0);
        assert_eq!(median(vec![]), 0.0);
    }
}
