//! Texts as vectors, through the public API: every pooling on every backend beside the reference, the options, what is
//! refused, and that chats go on undisturbed.

use std::thread;

use hanzo_edge::engine::{EmbedInput, LoadedModel};
use hanzo_edge::{Backend, Edge, EdgeConfig, EmbedOptions, ErrorKind, GenerateOptions, KvCache, Model, Pooling};
use serde::Deserialize;

use crate::support::gguf_builder::number;
use crate::support::load::{generate, load, load_with};
use crate::support::real_model;
use crate::support::tiny_model::TinyModel;

const TEXTS: [&str; 3] = [
    "The tower of the old town hall has a clock that stopped in the war.",
    "hello",
    "A river carries sand from the mountains to the sea, and the sea gives rain back to the mountains.",
];
const POOLINGS: [Pooling; 4] = [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last];

fn edge(backend: Backend, kv_cache: KvCache) -> Edge {
    let model = Model::File(real_model::path());
    Edge::new(EdgeConfig { model, backend, kv_cache, max_context_tokens: 600, ..EdgeConfig::default() }).unwrap()
}

fn with(pooling: Pooling) -> EmbedOptions {
    EmbedOptions { pooling: Some(pooling), ..EmbedOptions::default() }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt()
}

/// The pooled states of `[tokens, width]`, by plain sums.
fn pooled(states: &[f32], width: usize, pooling: Pooling) -> Vec<f32> {
    let rows: Vec<&[f32]> = states.chunks(width).collect();
    match pooling {
        Pooling::None => states.to_vec(),
        Pooling::Cls => rows[0].to_vec(),
        Pooling::Last => rows[rows.len() - 1].to_vec(),
        Pooling::Mean => {
            let mean = |column: usize| rows.iter().map(|row| f64::from(row[column])).sum::<f64>() / rows.len() as f64;
            (0..width).map(|column| mean(column) as f32).collect()
        }
    }
}

#[derive(Deserialize)]
struct Recorded {
    text: String,
    pooling: String,
    vector: Vec<f32>,
}

#[test]
fn vectors_of_the_real_model_are_those_of_an_independent_engine() {
    let mut all: serde_json::Value = serde_json::from_str(include_str!("../fixtures/oracle/embeddings.json")).unwrap();
    let recorded: Vec<Recorded> = serde_json::from_value(all["smollm2-135m-instruct-q4_1"].take()).unwrap();
    assert_eq!(recorded.len(), 4);
    // The CPU's activations are bytes.
    for (backend, least) in [(Backend::Cpu, 0.9995), (Backend::Wgpu, 0.999_99)] {
        let edge = edge(backend, KvCache::Auto);
        for Recorded { text, pooling, vector } in &recorded {
            let found = cosine(&edge.embed(&[text], &with(pooling.parse().unwrap())).unwrap()[0], vector);
            println!("{backend:?}, {pooling}: {found:.6}");
            assert!(found >= least, "{backend:?}, {pooling}, {text:?}: {found}");
        }
    }
}

/// Sequences of ids through a tiny model, whose weights are floats.
fn tiny_vectors(model: &mut LoadedModel, inputs: &[EmbedInput], options: &EmbedOptions) -> Vec<Vec<f32>> {
    let mut embedding = model.start_embedding(inputs, options).unwrap();
    let mut vectors = Vec::new();
    while !embedding.is_over() {
        vectors.extend(pollster::block_on(model.next_vector(&mut embedding)).unwrap());
    }
    vectors
}

#[test]
fn every_architecture_and_pooling_on_every_backend_beside_the_reference() {
    for (architecture, format, tied) in
        [("llama", "f32", true), ("llama", "q4_1", false), ("qwen3", "f32", false), ("qwen3", "q8_0", true)]
    {
        let file = TinyModel { tied, ..TinyModel::new(architecture, format, 11) }.build();
        let inputs = [EmbedInput::Tokens((0..40).map(|i| i * 7 % 250).collect()), EmbedInput::Text("hello".into())];
        let raw = |pooling| EmbedOptions { normalize: false, ..with(pooling) };
        let open = |backend| {
            let config = EdgeConfig { backend, max_context_tokens: 64, threads: 1, ..EdgeConfig::default() };
            load_with(std::slice::from_ref(&file), config).unwrap()
        };
        let states = tiny_vectors(&mut open(Backend::Reference), &inputs, &raw(Pooling::None));
        assert_eq!(states.iter().map(Vec::len).collect::<Vec<_>>(), [40 * 64, 64]);
        for backend in [Backend::Cpu, Backend::Wgpu] {
            let mut model = open(backend);
            let least = if format == "f32" || backend == Backend::Wgpu { 0.99999 } else { 0.999 };
            for pooling in POOLINGS {
                for (found, states) in tiny_vectors(&mut model, &inputs, &raw(pooling)).iter().zip(&states) {
                    let found = cosine(found, &pooled(states, 64, pooling));
                    assert!(found > least, "{architecture} {format}, {pooling:?}, {backend:?}: {found}");
                }
            }
        }
    }
}

#[test]
fn many_texts_in_one_call_are_as_each_alone_and_long_ones_as_their_states() {
    let edge = edge(Backend::Cpu, KvCache::Auto);
    let options = EmbedOptions::default();
    let together = edge.embed(&TEXTS, &options).unwrap();
    for (text, vector) in TEXTS.iter().zip(&together) {
        assert_eq!(edge.embed(&[text], &options).unwrap()[0], *vector);
        assert!((length(vector) - 1.0).abs() < 1e-6 && vector.len() == 576);
    }
    assert_eq!(edge.embed(&[] as &[&str], &options).unwrap(), Vec::<Vec<f32>>::new());
    // Over several steps: what is pooled is the whole.
    let ids: Vec<u32> = edge.tokenize(&TEXTS.join(" ").repeat(20)).unwrap().into_iter().take(580).collect();
    let raw = |pooling| {
        let options = EmbedOptions { normalize: false, ..with(pooling) };
        edge.embed_tokens(std::slice::from_ref(&ids), &options).unwrap().remove(0)
    };
    let states = raw(Pooling::None);
    assert_eq!(states.len(), 580 * 576);
    for pooling in [Pooling::Cls, Pooling::Last] {
        assert_eq!(raw(pooling), pooled(&states, 576, pooling));
    }
    let off = |(a, b): (&f32, &f32)| (a - b).abs();
    assert!(raw(Pooling::Mean).iter().zip(&pooled(&states, 576, Pooling::Mean)).map(off).fold(0.0, f32::max) < 1e-5);
}

#[test]
fn near_meanings_are_nearer() {
    let edge = edge(Backend::Cpu, KvCache::Auto);
    let texts = ["The cat sleeps on the sofa.", "A cat is sleeping on a couch.", "Interest rates rose by two percent."];
    let vectors = edge.embed(&texts, &with(Pooling::Mean)).unwrap();
    assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.05);
}

#[test]
fn dimensions_cut_and_then_scale() {
    let edge = edge(Backend::Cpu, KvCache::Auto);
    let raw = edge.embed(&["hello"], &EmbedOptions { normalize: false, ..EmbedOptions::default() }).unwrap().remove(0);
    assert!((length(&raw) - 1.0).abs() > 0.1);
    let cut = EmbedOptions { dimensions: Some(64), ..EmbedOptions::default() };
    let vector = edge.embed(&["hello"], &cut).unwrap().remove(0);
    assert!(vector.len() == 64 && (length(&vector) - 1.0).abs() < 1e-6);
    assert!(cosine(&vector, &raw[..64]) > 0.999_999);
    assert_eq!(edge.embed(&["hello"], &EmbedOptions { normalize: false, ..cut }).unwrap()[0], raw[..64]);
    for wrong in [0, 577] {
        let error =
            edge.embed(&["hello"], &EmbedOptions { dimensions: Some(wrong), ..EmbedOptions::default() }).unwrap_err();
        assert_eq!(error.to_string(), format!("dimensions: expected 1 to 576, found {wrong}"));
    }
}

#[test]
fn the_file_says_how_texts_begin_and_end_and_are_pooled() {
    let file = |pooling: Option<u32>, ends: bool| {
        let mut file = TinyModel::new("qwen3", "f32", 5).builder();
        if let Some(pooling) = pooling {
            file = file.field("qwen3.pooling_type", number(pooling));
        }
        if ends {
            file = file.field("tokenizer.ggml.add_eos_token", number(true));
        }
        load(&[file.build()], Backend::Cpu).unwrap()
    };
    let vector = |model: &mut LoadedModel, input: EmbedInput, pooling| {
        tiny_vectors(model, &[input], &EmbedOptions { pooling, ..EmbedOptions::default() }).remove(0)
    };
    let text = || EmbedInput::Text("hello world".to_owned());
    for (number, pooling) in [(1, Pooling::Mean), (2, Pooling::Cls), (3, Pooling::Last), (0, Pooling::Last)] {
        let mut model = file(Some(number), false);
        assert_eq!(vector(&mut model, text(), None), vector(&mut model, text(), Some(pooling)));
    }
    let mut plain = file(None, false);
    assert_eq!(vector(&mut plain, text(), None), vector(&mut plain, text(), Some(Pooling::Last)));
    let mut ranker = file(Some(4), false);
    let error = ranker.start_embedding(&[text()], &EmbedOptions::default()).err().unwrap();
    assert!(error.kind() == ErrorKind::UnsupportedModel && error.to_string().contains("found 4"), "{error}");
    assert_eq!(vector(&mut ranker, text(), Some(Pooling::Mean)).len(), 64);
    // The control token at the end is the file's.
    let mut ending = file(None, true);
    let eos = ending.tokenize("<|im_end|>").unwrap();
    let ids = [ending.tokenize("hello world").unwrap(), eos].concat();
    assert_eq!(vector(&mut ending, text(), None), vector(&mut ending, EmbedInput::Tokens(ids), None));
    assert_ne!(vector(&mut ending, text(), None), vector(&mut plain, text(), None));
}

#[test]
fn what_is_too_long_is_refused_or_cut_before_its_end() {
    let builder = TinyModel::new("llama", "f32", 5).builder().field("tokenizer.ggml.add_eos_token", number(true));
    let mut model = load(&[builder.build()], Backend::Cpu).unwrap();
    let long = EmbedInput::Text("z".repeat(70));
    let inputs = [EmbedInput::Text("hello".to_owned()), long];
    let error = model.start_embedding(&inputs, &EmbedOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
    assert_eq!(error.to_string(), "input[1]: expected at most 64 tokens, which the context holds, found 71");
    let cut = EmbedOptions { truncate: true, ..EmbedOptions::default() };
    let vectors = tiny_vectors(&mut model, &inputs, &cut);
    let fits = tiny_vectors(&mut model, &[EmbedInput::Text("z".repeat(63))], &EmbedOptions::default());
    assert_eq!(vectors[1], fits[0]);
}

#[test]
fn bad_input_is_one_clear_error_and_the_model_stays_usable() {
    let mut model = load(&[TinyModel::new("llama", "f32", 5).build()], Backend::Cpu).unwrap();
    let error = |inputs: &[EmbedInput]| model.start_embedding(inputs, &EmbedOptions::default()).err().unwrap();
    let text = EmbedInput::Text("hello".to_owned());
    for empty in [EmbedInput::Text(String::new()), EmbedInput::Tokens(Vec::new())] {
        let error = error(&[text.clone(), empty]);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(error.to_string(), "input[1]: expected at least one token, found an empty input");
    }
    let outside = error(&[EmbedInput::Tokens(vec![3, 288])]);
    assert_eq!(outside.to_string(), "input[0]: tokens: expected ids below 288, found 288");
    assert_eq!(tiny_vectors(&mut model, &[text], &EmbedOptions::default())[0].len(), 64);
    let bare = TinyModel { tokenizer: false, ..TinyModel::new("llama", "f32", 5) }.build();
    let mut bare = load(&[bare], Backend::Cpu).unwrap();
    let error = bare.start_embedding(&[EmbedInput::Text("a".to_owned())], &EmbedOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::UnsupportedModel);
    assert_eq!(tiny_vectors(&mut bare, &[EmbedInput::Tokens(vec![1])], &EmbedOptions::default())[0].len(), 64);
    let looks_ahead =
        TinyModel::new("qwen3", "f32", 5).builder().field("qwen3.attention.causal", number(false)).build();
    let error = load(&[looks_ahead], Backend::Cpu).err().unwrap();
    assert!(error.kind() == ErrorKind::UnsupportedModel && error.to_string().contains("looks ahead"), "{error}");
}

#[test]
fn an_embedding_between_two_turns_leaves_the_prefix_cache_as_it_was() {
    let config = EdgeConfig { backend: Backend::Cpu, max_context_tokens: 64, threads: 1, ..EdgeConfig::default() };
    let mut model = load_with(&[TinyModel::new("llama", "f32", 5).build()], config).unwrap();
    let prompt: Vec<u32> = (0..40).collect();
    let first = generate(&mut model, prompt.clone(), 8).unwrap();
    let inputs = [EmbedInput::Tokens(vec![9; 60]), EmbedInput::Text("hello".to_owned())];
    tiny_vectors(&mut model, &inputs, &EmbedOptions::default());
    let again = generate(&mut model, prompt, 8).unwrap();
    assert_eq!((again.tokens, again.usage.cached_tokens), (first.tokens, 39));
}

#[test]
fn streams_and_embeddings_of_two_threads_do_not_disturb_each_other() {
    let edge = edge(Backend::Cpu, KvCache::Auto);
    let options = GenerateOptions { max_tokens: Some(24), temperature: Some(0.0), ..GenerateOptions::default() };
    let answer = || {
        let mut stream = edge.complete("The tower of the old town", options.clone()).unwrap();
        while stream.next_event().unwrap().is_some() {}
        stream.result().unwrap().tokens.clone()
    };
    let (alone, vectors) = (answer(), edge.embed(&TEXTS, &EmbedOptions::default()).unwrap());
    thread::scope(|scope| {
        let embedding = scope.spawn(|| {
            for _ in 0..4 {
                assert_eq!(edge.embed(&TEXTS, &EmbedOptions::default()).unwrap(), vectors);
            }
        });
        assert_eq!(answer(), alone);
        embedding.join().unwrap();
    });
}
