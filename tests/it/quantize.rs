//! Quantization while loading: what is held, that every backend computes with it, what `auto` takes, and what it does to
//! the real model's answers.

use futures::executor::block_on;
use hanzo_edge::engine::{Backend, ChatOptions, EdgeConfig, LoadedModel, Quantization};
use hanzo_edge::error::{ErrorKind, Result};
use serde_json::json;

use crate::support::convert::converted;
use crate::support::load::{generate, load_with};
use crate::support::real_model;
use crate::support::tiny_model::TinyModel;

const PROSE: &str = include_str!("../fixtures/oracle/prose.txt");
const WINDOW: usize = 512;

/// Every scheme, the most bits first.
const SCHEMES: [Quantization; 6] = [
    Quantization::Afq8,
    Quantization::Int8,
    Quantization::Afq6,
    Quantization::Afq4,
    Quantization::Afq3,
    Quantization::Afq2,
];

fn config(backend: Backend, quantization: Quantization) -> EdgeConfig {
    EdgeConfig { backend, quantization, max_context_tokens: 64, threads: 1, ..EdgeConfig::default() }
}

/// A model whose matrices have 64, 96 and 128 columns.
fn tiny(format: &'static str) -> Vec<Vec<u8>> {
    let tiny =
        TinyModel { hidden: 128, heads: 6, head_dim: 16, feed_forward: 64, ..TinyModel::new("qwen3", format, 11) };
    vec![tiny.build()]
}

fn logits(model: &mut LoadedModel) -> Vec<f32> {
    block_on(model.logits(&[3, 1, 41, 59, 26, 5, 35, 89])).unwrap()
}

fn nmse(expected: &[f32], found: &[f32]) -> f64 {
    let error: f64 = expected.iter().zip(found).map(|(e, f)| f64::from(e - f).powi(2)).sum();
    error / expected.iter().map(|e| f64::from(*e).powi(2)).sum::<f64>()
}

#[test]
fn every_scheme_is_held_in_fewer_bytes_and_computed_alike_everywhere() {
    let files = tiny("f16");
    let mut whole = load_with(&files, config(Backend::Reference, Quantization::None)).unwrap();
    let exact = logits(&mut whole);
    let mut before = (u64::MAX, 0.0);
    for quantization in SCHEMES {
        let name = quantization.name();
        let mut reference = load_with(&files, config(Backend::Reference, quantization)).unwrap();
        let expected = logits(&mut reference);
        let weights = reference.diagnostics().weights;
        assert_eq!(weights.quantization, name);
        assert!(weights.bytes < before.0 && weights.bytes < whole.info().weights.bytes, "{name}: {weights:?}");
        let loss = nmse(&exact, &expected);
        assert!(loss > before.1, "{name} loses {loss:e}");
        before = (weights.bytes, loss);
        for backend in [Backend::Cpu, Backend::Wgpu] {
            let mut model = load_with(&files, config(backend, quantization)).unwrap();
            let error = nmse(&expected, &logits(&mut model));
            println!("{name} {backend:?}: loss {loss:e}, error {error:e}");
            // The CPU multiplies with activations in 8 bits, and a random model amplifies what they lose.
            assert!(error < if backend == Backend::Cpu { 3e-3 } else { 1e-5 }, "{name} {backend:?}: {error:e}");
            assert_eq!(model.diagnostics().weights, weights, "{name} {backend:?}");
            // What a backend holds beside the matrices: vectors, rotary tables, sums of rows.
            let held = model.memory().weights_bytes;
            assert!(held >= weights.bytes && held < weights.bytes + 40_000, "{name} {backend:?}: {held}");
        }
    }
}

#[test]
fn layouts_are_named_with_their_groups() {
    let model = load_with(&tiny("f32"), config(Backend::Cpu, Quantization::Afq4)).unwrap();
    let matrices: Vec<(String, usize)> =
        model.info().weights.matrices.iter().map(|share| (share.layout.clone(), share.matrices)).collect();
    // The tied table in 6 bits; the attention's output matrix has 96 columns.
    let of = |name: &str| matrices.iter().find(|(layout, _)| layout == name).map(|(_, count)| *count);
    assert_eq!((of("b6g64a"), of("b4g64a"), of("b4g32a")), (Some(1), Some(12), Some(2)), "{matrices:?}");
    let model = load_with(&tiny("f32"), config(Backend::Cpu, Quantization::Int8)).unwrap();
    assert!(model.info().weights.matrices.iter().any(|share| share.layout == "b8g96"));
    assert!(model.diagnostics().report.variants.iter().all(|(_, kernel)| kernel.contains("uint8")));
}

#[test]
fn weights_that_would_not_get_smaller_stay_and_are_named() {
    let files = tiny("q4_0");
    let mut kept = load_with(&files, config(Backend::Cpu, Quantization::None)).unwrap();
    for quantization in [Quantization::Afq8, Quantization::Int8, Quantization::Afq6, Quantization::Afq4] {
        let mut model = load_with(&files, config(Backend::Cpu, quantization)).unwrap();
        let weights = model.diagnostics().weights;
        assert!(weights.reason.contains("15 of 15 matrices are kept"), "{}", weights.reason);
        assert_eq!(weights.bytes, kept.info().weights.bytes);
        if quantization != Quantization::Int8 {
            assert_eq!(logits(&mut model), logits(&mut kept));
        }
    }
    let smaller = load_with(&files, config(Backend::Cpu, Quantization::Afq3)).unwrap();
    assert!(smaller.info().weights.reason.contains("1 of 15"), "the table: {:?}", smaller.info().weights);
}

#[test]
fn auto_takes_the_most_bits_that_fit_and_says_what_is_needed() {
    let files = tiny("f16");
    let with = |quantization, max_memory_bytes| {
        load_with(&files, EdgeConfig { max_memory_bytes, ..config(Backend::Cpu, quantization) })
    };
    let cache = with(Quantization::None, 0).unwrap().memory().kv_bytes;
    let needs: Vec<(&str, u64)> = [Quantization::None, Quantization::Afq8, Quantization::Afq6, Quantization::Afq4]
        .into_iter()
        .chain([Quantization::Afq3, Quantization::Afq2])
        .map(|quantization| (quantization.name(), with(quantization, 0).unwrap().info().weights.bytes + cache))
        .collect();
    let chosen = |memory| with(Quantization::Auto, memory).map(|model| model.info().weights.clone());
    assert_eq!(chosen(0).unwrap().quantization, "none");
    for (index, (name, need)) in needs.iter().enumerate() {
        let weights = chosen(*need).unwrap();
        assert_eq!(weights.quantization, *name, "{need}");
        assert_eq!(weights.reason.contains("do not fit"), index > 0, "{}", weights.reason);
        if let Some((next, _)) = needs.get(index + 1) {
            assert_eq!(chosen(need - 1).unwrap().quantization, *next);
        }
    }
    let (_, least) = needs[needs.len() - 1];
    let error = chosen(least - 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains(&least.to_string()), "{error}");
    // What was named is not made smaller than that.
    let error = with(Quantization::Afq8, needs[1].1 - 1).err().unwrap();
    assert!(error.to_string().contains(&needs[1].1.to_string()), "{error}");
}

/// The greedy answer to a question.
fn answer(model: &mut LoadedModel, question: &str) -> Result<String> {
    let prompt = model.chat_prompt(&[json!({ "role": "user", "content": question })], &ChatOptions::default())?;
    Ok(generate(model, prompt, 12)?.text)
}

/// Perplexity of the second half of the first window of the prose.
fn perplexity(model: &mut LoadedModel) -> f64 {
    let ids = model.tokenize(PROSE).unwrap();
    let logprob = block_on(model.score(&ids[..WINDOW])).unwrap().logprob;
    let scored = &logprob[WINDOW / 2..];
    (-scored.iter().map(|logprob| f64::from(*logprob)).sum::<f64>() / scored.len() as f64).exp()
}

#[test]
fn the_real_model_reads_and_answers_in_every_scheme() {
    let files = vec![converted(&std::fs::read(real_model::path()).unwrap(), "q8_0")];
    let load = |quantization| {
        let config = EdgeConfig { max_context_tokens: WINDOW, threads: 2, ..config(Backend::Cpu, quantization) };
        load_with(&files, config).unwrap()
    };
    let mut whole = load(Quantization::Auto);
    let exact = perplexity(&mut whole);
    // What a scheme may lose (docs/numerics.md has more), and whether it still knows the answer. So small a model has little
    // to spare: 2 bits leave nothing of it.
    let cases = [
        (Quantization::Afq8, 1.005, true),
        (Quantization::Int8, 1.05, true),
        (Quantization::Afq6, 1.05, true),
        (Quantization::Afq4, 1.4, true),
        (Quantization::Afq3, 12.0, false),
        (Quantization::Afq2, f64::MAX, false),
    ];
    let mut bytes = whole.info().weights.bytes;
    for (quantization, share, knows) in cases {
        let mut model = load(quantization);
        let (found, text) = (perplexity(&mut model), answer(&mut model, "What is gravity?").unwrap());
        println!("{}: {:.4} of {exact:.4}, {text:?}", quantization.name(), found);
        assert!(found.is_finite() && found / exact <= share, "{}: {found} of {exact}", quantization.name());
        assert!(!knows || text.contains("fundamental concept in physics"), "{}: {text}", quantization.name());
        // Groups of 64 with two halves take as much as groups of 32 with one.
        let smaller = quantization != Quantization::Afq8;
        assert_eq!(model.info().weights.bytes < bytes, smaller, "{}", quantization.name());
        bytes = model.info().weights.bytes;
    }
}
