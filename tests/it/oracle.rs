//! The real default model against the recordings of an independent engine: forced-decoding agreement and perplexity, on
//! every backend. Greedy text is never compared: near-ties flip.

use hanzo_edge::{Backend, Edge, EdgeConfig, KvCache, Model};
use serde::Deserialize;

use crate::support::real_model;

const GREEDY: &str = include_str!("../fixtures/oracle/greedy.json");
const PROSE: &str = include_str!("../fixtures/oracle/prose.txt");
const RECORDING: &str = "smollm2-135m-instruct-q4_1";
/// Above this recorded margin between the two highest logits, every path must choose what was recorded.
const CLEAR_MARGIN: f32 = 0.5;
const WINDOW: usize = 512;
/// Perplexity of the first window by the reference backend; see the fixtures' README.
const FIRST_WINDOW_REFERENCE: f64 = 14.7191;
/// By how much, as a share, a backend's perplexity may differ from the reference's.
const PERPLEXITY_SHARE: f64 = 0.005;

#[derive(Deserialize)]
struct Recording {
    prompt: String,
    prompt_ids: Vec<u32>,
    greedy_ids: Vec<u32>,
    greedy_margins: Vec<f32>,
}

fn recordings() -> Vec<Recording> {
    let mut all: serde_json::Value = serde_json::from_str(GREEDY).unwrap();
    serde_json::from_value(all[RECORDING].take()).unwrap()
}

fn load(backend: Backend, kv_cache: KvCache) -> Edge {
    let config = EdgeConfig {
        model: Model::File(real_model::path()),
        backend,
        max_context_tokens: WINDOW,
        kv_cache,
        ..EdgeConfig::default()
    };
    Edge::new(config).unwrap()
}

/// Feeds prompts with their recorded answers and counts the positions whose most likely token is the recorded one.
/// At least `share` of them must agree, and all with a clear margin.
fn agrees(edge: &Edge, recordings: &[Recording], share: f64) {
    let (mut n_positions, mut misses) = (0, Vec::new());
    for recording in recordings {
        assert_eq!(edge.tokenize(&recording.prompt).unwrap(), recording.prompt_ids);
        let tokens = [recording.prompt_ids.as_slice(), &recording.greedy_ids].concat();
        let argmax = edge.score(&tokens).unwrap().argmax;
        let first = recording.prompt_ids.len() - 1;
        for (index, (wanted, margin)) in recording.greedy_ids.iter().zip(&recording.greedy_margins).enumerate() {
            n_positions += 1;
            if argmax[first + index] != *wanted {
                misses.push(*margin);
            }
        }
    }
    let agreement = 1.0 - misses.len() as f64 / n_positions as f64;
    println!("{agreement:.4} of {n_positions} positions agree; margins of the others: {misses:?}");
    assert!(agreement >= share, "{agreement} of {n_positions} positions agree, expected {share}");
    assert!(misses.iter().all(|&margin| margin < CLEAR_MARGIN), "clear margins were missed: {misses:?}");
}

/// Scores the first window of the prose and compares with what the reference backend gave.
fn reads_like_the_reference(edge: &Edge) {
    let ids = edge.tokenize(PROSE).unwrap();
    let logprob = edge.score(&ids[..WINDOW]).unwrap().logprob;
    let scored = &logprob[WINDOW / 2..];
    assert_eq!(scored.len(), WINDOW / 2 - 1);
    let mean = scored.iter().map(|&logprob| f64::from(logprob)).sum::<f64>() / scored.len() as f64;
    let ppl = (-mean).exp();
    println!("perplexity {ppl:.4}, by the reference {FIRST_WINDOW_REFERENCE:.4}");
    assert!((ppl / FIRST_WINDOW_REFERENCE - 1.0).abs() <= PERPLEXITY_SHARE, "{ppl}");
}

/// What the slower backends are given.
fn shorter_recordings() -> Vec<Recording> {
    let shorter: Vec<Recording> =
        recordings().into_iter().filter(|recording| recording.prompt_ids.len() < 20).collect();
    assert_eq!(shorter.len(), 4);
    shorter
}

#[test]
fn the_reference_agrees_with_the_recording() {
    agrees(&load(Backend::Reference, KvCache::F32), &shorter_recordings(), 0.995);
}

#[test]
fn the_cpu_backend_agrees_with_the_recording_and_the_reference() {
    let edge = load(Backend::Cpu, KvCache::Auto);
    agrees(&edge, &recordings(), 0.96);
    reads_like_the_reference(&edge);
}

#[test]
fn the_gpu_backend_agrees_with_the_recording_and_the_reference() {
    let edge = load(Backend::Wgpu, KvCache::Auto);
    agrees(&edge, &shorter_recordings(), 0.995);
    reads_like_the_reference(&edge);
}

#[test]
fn a_cache_of_bytes_agrees_with_the_recording_and_the_reference() {
    let edge = load(Backend::Cpu, KvCache::Q8);
    agrees(&edge, &recordings(), 0.96);
    reads_like_the_reference(&edge);
    reads_like_the_reference(&load(Backend::Wgpu, KvCache::Q8));
}
