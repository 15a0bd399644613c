//! The command line program as users and scripts run it: every command on a tiny model, and every way to get it wrong.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::support::gguf_builder::number;
use crate::support::real_model;
use crate::support::tiny_model::{TinyModel, VOCAB};

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hanzo-edge-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn model(&self) -> String {
        self.file("tiny.gguf", &TinyModel::new("llama", "q4_0", 7).build())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn program(cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hanzo-edge"));
    command.env("HANZO_EDGE_CACHE", cache).stdin(Stdio::null());
    command
}

fn run(folder: &Folder, args: &[&str]) -> Output {
    program(&folder.0).args(args).output().unwrap()
}

fn run_with_input(folder: &Folder, args: &[&str], input: &str) -> Output {
    let mut command = program(&folder.0);
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Standard output of a run that must succeed.
fn text(output: &Output) -> String {
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one JSON object on standard output.
fn json(output: &Output) -> Value {
    let text = text(output);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A run that must fail with `code` and one line on standard error that contains `words`.
fn fails(output: &Output, code: i32, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(output.stdout.is_empty());
    if code == 1 {
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    for word in words {
        assert!(stderr.contains(word), "{word:?} is not in {stderr:?}");
    }
}

#[test]
fn generate_prints_text_or_one_json_object() {
    let folder = Folder::new();
    let model = folder.model();
    let plain = text(&run(&folder, &["generate", &model, "-p", "hello", "-n", "5", "--backend", "cpu"]));
    let args = ["generate", &model, "-p", "hello", "--max-tokens", "5", "--backend", "cpu", "--json", "-t", "1"];
    let answer = json(&run(&folder, &args));
    assert_eq!(keys(&answer), ["prompt_ids", "ids", "text", "finish_reason", "stats"]);
    assert_eq!(plain, format!("{}\n", answer["text"].as_str().unwrap()));
    assert!(answer["ids"].as_array().unwrap().len() <= 5);
    assert!(answer["stats"]["decode_tokens_per_second"].is_number());
    assert_eq!(answer["stats"]["backend"], "cpu");
    let none = json(&run(&folder, &["generate", &model, "-p", "hello", "-n", "0", "--backend", "cpu", "--json"]));
    assert_eq!((&none["text"], &none["finish_reason"]), (&Value::from(""), &Value::from("length")));
}

#[test]
fn the_backends_agree_on_a_greedy_answer() {
    let folder = Folder::new();
    let model = folder.file("f32.gguf", &TinyModel::new("llama", "f32", 3).build());
    let ids = |backend: &str| {
        let args =
            ["generate", &model, "-p", "the world", "-n", "12", "--json", "--backend", backend, "--kv-cache", "f32"];
        json(&run(&folder, &args))["ids"].clone()
    };
    let reference = ids("reference");
    assert!(!reference.as_array().unwrap().is_empty());
    assert_eq!(ids("cpu"), reference);
}

#[test]
fn chat_answers_once_and_in_a_conversation() {
    let folder = Folder::new();
    let model = folder.model();
    let base = ["chat", &model, "--backend", "cpu", "--max-tokens", "4", "--seed", "3", "--temperature", "0.5"];
    let once = [base.as_slice(), &["-p", "hello", "--system", "be the world"]].concat();
    let answer = text(&run(&folder, &once));
    assert!(answer.ends_with('\n'));
    assert_eq!(text(&run(&folder, &once)), answer, "the same seed gives the same answer");
    let lines = text(&run_with_input(&folder, &[base.as_slice(), &["--json"]].concat(), "hello\n\nworld\n"));
    let answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(keys(&answers[0]), ["text", "ids", "finish_reason", "usage", "stats"]);
    assert!(
        answers[1]["usage"]["cached_tokens"].as_u64() > Some(0),
        "the second turn reuses the first: {}",
        answers[1]
    );
}

#[test]
fn tokenize_prints_a_line_of_ids_per_line_of_text() {
    let folder = Folder::new();
    let model = folder.model();
    let ids = text(&run_with_input(&folder, &["tokenize", &model, "--backend", "cpu"], "hello world\n\n<|im_end|>\n"));
    // Merged tokens follow the 256 bytes in the order of the merges; then come the control tokens.
    assert_eq!(ids, "259 264\n\n270\n");
}

#[test]
fn logits_and_score_agree() {
    let folder = Folder::new();
    let model = folder.model();
    let top = json(&run(&folder, &["logits", &model, "--tokens", "1,2,3", "--top", "4", "--json", "--backend", "cpu"]));
    let rows = top["top"].as_array().unwrap();
    assert_eq!((keys(&top), rows.len()), (vec!["top"], 4));
    let logit = |row: &Value| row[1].as_f64().unwrap();
    assert!(rows.windows(2).all(|pair| logit(&pair[0]) >= logit(&pair[1])));
    let score = json(&run(&folder, &["score", &model, "--tokens", "1,2,3", "--json", "--backend", "cpu"]));
    assert_eq!(keys(&score), ["argmax", "logprob"]);
    assert_eq!(score["argmax"][2], rows[0][0]);
    assert_eq!((score["argmax"].as_array().unwrap().len(), score["logprob"].as_array().unwrap().len()), (3, 2));
    assert!(score["logprob"].as_array().unwrap().iter().all(|logprob| logprob.as_f64().unwrap() < 0.0));
    assert_eq!(text(&run(&folder, &["logits", &model, "--tokens", "1,2,3", "--backend", "cpu"])).lines().count(), 10);
}

#[test]
fn perplexity_scores_the_second_half_of_each_window() {
    let folder = Folder::new();
    let model = folder.model();
    let file = folder.file("text.txt", "abcdefghij".repeat(7).as_bytes());
    let args = ["perplexity", &model, &file, "--context", "32", "--json", "--backend", "cpu"];
    let measured = json(&run(&folder, &args));
    assert_eq!(keys(&measured), ["tokens", "ppl"]);
    // 70 tokens are two windows; of each, 15 tokens have a next one in the window's second half.
    assert_eq!(measured["tokens"], 30);
    assert!(measured["ppl"].as_f64().unwrap() > 1.0);
    let short = run(&folder, &["perplexity", &model, &file, "--context", "100", "--backend", "cpu"]);
    fails(&short, 2, &["at least 100 tokens, found 70"]);
}

#[test]
fn bench_measures_a_file_without_a_tokenizer() {
    let folder = Folder::new();
    let tiny = TinyModel { tokenizer: false, ..TinyModel::new("qwen3", "q8_0", 5) };
    let model = folder.file("bare.gguf", &tiny.build());
    let args = [
        "bench",
        &model,
        "--prompt",
        "24",
        "--decode",
        "6",
        "--depth",
        "8",
        "--reps",
        "2",
        "--json",
        "--backend",
        "cpu",
    ];
    let figures = json(&run(&folder, &args));
    let names = [
        "prompt_tokens_per_second",
        "decode_tokens_per_second",
        "time_to_first_token_ms",
        "load_ms",
        "peak_bytes",
        "weight_bytes",
        "stream_gb_per_second",
        "roofline_fraction",
        "dispatches_per_token",
        "device",
        "kernels",
    ];
    assert_eq!(keys(&figures), names);
    for name in &names[..8] {
        assert!(figures[name].as_f64().unwrap() > 0.0, "{name}: {figures}");
    }
    fails(&run(&folder, &["generate", &model, "-p", "x", "--backend", "cpu"]), 1, &["no tokenizer"]);
    fails(&run(&folder, &["bench", &model, "--reps", "0"]), 2, &["--reps"]);
}

#[test]
fn inspect_shows_header_metadata_and_tensors() {
    let folder = Folder::new();
    let model = folder.model();
    let shown = text(&run(&folder, &["inspect", &model]));
    for words in ["gguf version 3", "general.architecture", "\"llama\"", "blk.1.ffn_down.weight", "64 x 128", "q4_0"] {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
    let header = json(&run(&folder, &["inspect", &model, "--json"]));
    assert_eq!(header["metadata"]["llama.block_count"], 2);
    assert_eq!(header["tensors"][0]["shape"], serde_json::json!([VOCAB, 64]));
    let cut = folder.file("cut.gguf", &TinyModel::new("llama", "q4_0", 7).build()[..5000]);
    fails(&run(&folder, &["inspect", &cut]), 1, &["cut.gguf"]);
    fails(&run(&folder, &["inspect", &folder.file("page.gguf", b"<!doctype html>")]), 1, &["a web page"]);
}

#[test]
fn models_ops_and_help_list_what_there_is() {
    let folder = Folder::new();
    let models = text(&run(&folder, &["models"]));
    assert!(models.contains("smollm2-135m-instruct") && models.contains("gemma-3-270m"), "{models}");
    let list = json(&run(&folder, &["models", "--json"]));
    assert_eq!(list["models"][0]["path"], Value::Null, "an empty cache holds no model");
    let ops = text(&run(&folder, &["ops"]));
    for op in hanzo_edge::ops::OPS {
        assert!(ops.lines().any(|line| line.starts_with(op.name)), "{}", op.name);
    }
    for backend in hanzo_edge::backend::BACKENDS {
        assert!(ops.lines().next().unwrap().contains(backend.name));
    }
    let help = text(&run(&folder, &["--help"]));
    for command in
        ["chat", "generate", "tokenize", "logits", "score", "perplexity", "bench", "inspect", "models", "pull", "ops"]
    {
        assert!(help.contains(command), "{command}");
        text(&run(&folder, &[command, "--help"]));
    }
}

#[test]
fn bad_usage_ends_with_two() {
    let folder = Folder::new();
    let model = folder.model();
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["Usage"]),
        (&["fly"], &["fly"]),
        (&["generate", &model], &["--prompt"]),
        (&["generate", &model, "-p", "x", "--backend", "tpu"], &["tpu"]),
        (&["generate", &model, "-p", "x", "-n", "-2"], &["-2"]),
        (&["generate", &model, "-p", "x", "-n", "1.5"], &["1.5"]),
        (&["generate", &model, "-p", "x", "--threads", "0"], &["0"]),
        (&["generate", &model, "-p", "x", "--temp", "-1", "--backend", "cpu"], &["temperature", "-1"]),
        (&["generate", &model, "-p", "x", "--top-p", "2", "--backend", "cpu"], &["topP", "2"]),
        (&["generate", &model, "-p", "x", "--stop", "", "--backend", "cpu"], &["stop"]),
        (&["generate", &model, "-p", "x", "-c", "100000", "--backend", "cpu"], &["512", "100000"]),
        (&["logits", &model, "--tokens", "1,x", "--backend", "cpu"], &["x"]),
        (&["logits", &model, "--tokens", "", "--backend", "cpu"], &["token id"]),
        (&["score", &model, "--tokens", "1,99999", "--backend", "cpu"], &["99999"]),
        (&["perplexity", &model, "file", "--context", "1"], &["--context"]),
    ];
    for (args, words) in cases {
        fails(&run(&folder, args), 2, words);
    }
}

#[test]
fn other_failures_end_with_one_and_one_line() {
    let folder = Folder::new();
    let model = folder.model();
    let broken = folder.file("broken.gguf", b"GGUF\x03\0\0\0 and then nothing of use at all");
    let long = "the world ".repeat(400);
    let cases: &[(&[&str], &[&str])] = &[
        (&["chat", "no-such-model", "-p", "x"], &["no-such-model", "smollm2-135m-instruct"]),
        (&["chat", "./no/such.gguf", "-p", "x"], &["./no/such.gguf"]),
        (&["chat", &broken, "-p", "x", "--backend", "cpu"], &["broken.gguf"]),
        (&["chat", &model, "-p", &long, "--backend", "cpu"], &["512"]),
        (&["chat", &model, "-p", "x", "--chat-template", "no-such-file"], &["no-such-file"]),
        (&["pull", "no-such-model"], &["no-such-model"]),
        (&["inspect", "no-such-file"], &["no-such-file"]),
        (&["perplexity", &model, "no-such-file"], &["no-such-file"]),
    ];
    for (args, words) in cases {
        fails(&run(&folder, args), 1, words);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new();
    let model = folder.model();
    let mut command = program(&folder.0);
    let args = ["generate", &model, "-p", "hello", "-n", "400", "--backend", "cpu"];
    let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_file_says_how_to_sample_and_the_user_overrules_it() {
    let folder = Folder::new();
    let builder = TinyModel::new("llama", "q4_0", 7).builder().field("general.sampling.temp", number(0.0f32));
    let model = folder.file("greedy.gguf", &builder.build());
    let base = ["chat", &model, "-p", "hello", "-n", "16", "--backend", "cpu"];
    let answer = |more: &[&str]| text(&run(&folder, &[base.as_slice(), more].concat()));
    let greedy = answer(&["--temp", "0"]);
    assert_eq!(answer(&["--seed", "1"]), greedy);
    assert_ne!(answer(&["--seed", "1", "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0"]), greedy);
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_an_answer_and_the_program_ends_well() {
    let folder = Folder::new();
    let model = real_model::path();
    let mut command = program(&folder.0);
    command.args(["generate", model.to_str().unwrap(), "-p", "Once upon a time", "-n", "3000", "--backend", "cpu"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let summary = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    assert!(summary.contains("abort"), "{summary}");
}

#[test]
fn embed_prints_a_vector_a_line_or_a_list_like_openai_s() {
    let folder = Folder::new();
    let model = folder.model();
    let base = ["embed", &model, "--backend", "cpu"];
    let with = |more: &[&'static str]| [base.as_slice(), more].concat();
    let lines = text(&run(&folder, &with(&["-p", "hello world", "-p", "-the"])));
    let rows: Vec<Vec<f64>> =
        lines.lines().map(|line| line.split(' ').map(|value| value.parse().unwrap()).collect()).collect();
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64]);
    assert!((rows[1].iter().map(|value| value * value).sum::<f64>() - 1.0).abs() < 1e-5);
    assert_eq!(text(&run_with_input(&folder, &base, "hello world\n-the\n")), lines);
    let list = json(&run(&folder, &with(&["-p", "hello world", "-p", "-the", "--json"])));
    assert_eq!((keys(&list), &list["object"]), (vec!["object", "data"], &Value::from("list")));
    assert_eq!((&list["data"][1]["object"], &list["data"][1]["index"]), (&Value::from("embedding"), &Value::from(1)));
    assert!((list["data"][0]["embedding"][3].as_f64().unwrap() - rows[0][3]).abs() < 1e-6);
    let shaped = ["-p", "the", "--pooling", "mean", "--embd-normalize", "-1", "--dimensions", "5"];
    assert_eq!(text(&run(&folder, &with(&shaped))).split(' ').count(), 5);
    fails(&run(&folder, &with(&["-p", "the", "--pooling", "max"])), 2, &["none, mean, cls or last"]);
    fails(&run(&folder, &with(&["-p", "the", "-p", ""])), 2, &["input[1]", "empty"]);
    fails(&run(&folder, &with(&["-p", "the", "--dimensions", "65"])), 2, &["1 to 64, found 65"]);
    let long = "x".repeat(600);
    let long = [base.as_slice(), &["-p", &long]].concat();
    fails(&run(&folder, &long), 1, &["input[0]", "at most 512 tokens", "found 600"]);
    assert_eq!(text(&run(&folder, &[long.as_slice(), &["--truncate"]].concat())).lines().count(), 1);
}
