//! Files whose container is sound but whose content is not: vocabularies, sizes, shapes and weights that contradict
//! each other. Each gives one clear error; whatever loads also runs without a panic; a sound model loads after each.

use hanzo_edge::engine::Backend;
use hanzo_edge::error::{Error, ErrorKind};

use crate::support::gguf_builder::{Field, GgufBuilder, number, numbers, string, strings};
use crate::support::load::{generate, load};
use crate::support::tiny_model::{TinyModel, VOCAB};

fn sound() -> GgufBuilder {
    TinyModel::new("llama", "q4_0", 1).builder()
}

/// The error of loading a file; a sound one must still load and answer after it.
fn refused(what: &str, file: &GgufBuilder) -> Error {
    let error = load(&[file.build()], Backend::Cpu).err().unwrap_or_else(|| panic!("{what} was loaded"));
    let mut model = load(&[sound().build()], Backend::Cpu).expect("a sound file after a bad one");
    assert_eq!(generate(&mut model, vec![1, 2, 3], 2).expect("an answer").usage.prompt_tokens, 3);
    error
}

#[test]
fn vocabularies_that_contradict_themselves_are_refused() {
    let n = VOCAB as usize;
    let scored = || {
        sound()
            .replace("tokenizer.ggml.model", string("llama"))
            .field("tokenizer.ggml.scores", numbers(&vec![0.0f32; n]))
    };
    let cases: Vec<(GgufBuilder, &str, Field, &str)> = vec![
        (
            scored(),
            "tokenizer.ggml.scores",
            numbers(&vec![0u8; n]),
            "expected an array of f32, found an array of 288 u8",
        ),
        (scored(), "tokenizer.ggml.scores", numbers(&vec![0.0f32; n - 1]), "found 287"),
        (sound(), "tokenizer.ggml.token_type", numbers(&vec![1u8; n]), "expected an array of i32"),
        (sound(), "tokenizer.ggml.token_type", strings(&vec!["1"; n]), "expected an array of i32"),
        (sound(), "tokenizer.ggml.token_type", numbers(&[1i32; 3]), "found 3"),
        (sound(), "tokenizer.ggml.tokens", numbers(&[1u32; 8]), "expected an array of string"),
        (sound(), "tokenizer.ggml.tokens", strings::<&str>(&[]), "no tokens"),
        (sound(), "tokenizer.ggml.tokens", strings(&vec![b"\xff\xfe".as_slice(); n]), "expected UTF-8"),
        (sound(), "tokenizer.ggml.bos_token_id", number(4_000_000_000u32), "found id 4000000000"),
        (sound(), "tokenizer.ggml.bos_token_id", number(-1i32), "expected u32, found i32 -1"),
        (sound(), "tokenizer.ggml.eos_token_id", string("2"), "expected u32"),
        (sound(), "tokenizer.ggml.merges", strings(&["nospace"]), "nospace"),
        (sound(), "tokenizer.ggml.merges", numbers(&[1u32]), "expected an array of string"),
        (sound(), "tokenizer.ggml.model", string("morse"), "morse"),
        (sound(), "tokenizer.ggml.model", number(7u32), "expected a UTF-8 string"),
    ];
    for (file, key, field, expected) in cases {
        let error = refused(key, &file.replace(key, field));
        assert!(error.to_string().contains(expected), "{key}: expected {expected:?} in {error}");
        assert!(matches!(error.kind(), ErrorKind::MalformedFile | ErrorKind::UnsupportedModel), "{error}");
    }
}

#[test]
fn sizes_that_no_model_has_are_refused() {
    for (key, field) in [
        ("llama.block_count", number(0u32)),
        ("llama.block_count", number(u32::MAX)),
        ("llama.block_count", number(3u32)),
        ("llama.block_count", number(-2i32)),
        ("llama.embedding_length", number(0u32)),
        ("llama.embedding_length", number(128u32)),
        ("llama.feed_forward_length", number(96u32)),
        ("llama.attention.head_count", number(0u32)),
        ("llama.attention.head_count", number(3u32)),
        ("llama.attention.head_count", number(1u32 << 31)),
        ("llama.attention.head_count_kv", number(0u32)),
        ("llama.attention.head_count_kv", number(3u32)),
        ("llama.attention.key_length", number(0u32)),
        ("llama.attention.key_length", number(15u32)),
        ("llama.attention.key_length", number(1u32 << 30)),
        ("llama.attention.value_length", number(8u32)),
        ("llama.attention.layer_norm_rms_epsilon", number(f32::NAN)),
        ("llama.attention.layer_norm_rms_epsilon", number(-1.0f32)),
        ("llama.context_length", number(0u32)),
        ("llama.context_length", string("512")),
        ("llama.rope.dimension_count", number(7u32)),
        ("llama.rope.dimension_count", number(64u32)),
        ("llama.rope.freq_base", number(0.0f32)),
        ("llama.rope.freq_base", number(f32::INFINITY)),
        ("general.architecture", string("perceptron")),
        ("general.architecture", number(1u32)),
        ("tokenizer.chat_template", number(1u32)),
    ] {
        let error = refused(key, &sound().replace(key, field));
        assert!(!error.message().is_empty(), "{key}");
    }
    for dropped in ["general.architecture", "llama.block_count", "llama.attention.head_count", "llama.context_length"] {
        let mut file = sound();
        file.fields.retain(|(key, _)| key != dropped.as_bytes());
        assert!(refused(dropped, &file).to_string().contains(dropped));
    }
}

#[test]
fn tensors_that_are_missing_or_of_another_shape_are_refused_by_name() {
    for name in ["token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_norm.weight", "output_norm.weight"] {
        let mut missing = sound();
        missing.tensors.retain(|tensor| tensor.name != name);
        let error = refused(name, &missing);
        assert!(error.to_string().contains(name), "{name}: {error}");
        let mut reshaped = sound();
        for tensor in reshaped.tensors.iter_mut().filter(|tensor| tensor.name == name) {
            // Half the rows, or half a vector.
            *tensor.dims.last_mut().unwrap() /= 2;
            tensor.data.truncate(tensor.data.len() / 2);
        }
        let error = refused(name, &reshaped);
        assert!(name == "token_embd.weight" || error.to_string().contains(name), "{name}: {error}");
    }
    let error = refused("no tensors", &GgufBuilder { tensors: Vec::new(), ..sound() });
    assert!(error.to_string().contains("token_embd.weight"), "{error}");
}

#[test]
fn weights_that_are_not_numbers_do_not_panic() {
    for bytes in [[0xff, 0xff], [0x00, 0x7c], [0x00, 0xfe], [0xff, 0x7b]] {
        for format in ["q4_0", "q8_0", "f16", "q6_k", "q4_k"] {
            let mut file = TinyModel::new("llama", format, 1).builder();
            for tensor in &mut file.tensors {
                for pair in tensor.data.as_chunks_mut::<2>().0.iter_mut().step_by(9) {
                    *pair = bytes;
                }
            }
            for backend in [Backend::Cpu, Backend::Reference] {
                if let Ok(mut model) = load(&[file.build()], backend) {
                    let _answer_or_error = generate(&mut model, vec![1, 2, 3], 3);
                }
            }
        }
    }
    let mut model = load(&[sound().build()], Backend::Cpu).unwrap();
    generate(&mut model, vec![1], 1).unwrap();
}

#[test]
fn a_split_model_answers_as_the_whole_one() {
    let whole = sound();
    let mut expected = load(&[whole.build()], Backend::Cpu).unwrap();
    let expected = generate(&mut expected, vec![5, 6, 7], 8).unwrap();
    let parts: Vec<Vec<u8>> = whole.split(3).iter().map(GgufBuilder::build).collect();
    let mut joined = load(&[parts[2].clone(), parts[0].clone(), parts[1].clone()], Backend::Cpu).unwrap();
    assert_eq!(generate(&mut joined, vec![5, 6, 7], 8).unwrap().tokens, expected.tokens);
}

#[test]
fn changed_headers_load_and_run_or_are_refused() {
    let sound = sound().build();
    let header_len = crate::support::open::header(&sound, false).unwrap().data_start as usize;
    let (mut state, mut loaded) = (7u64, 0);
    for _ in 0..300 {
        let mut file = sound.clone();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (state >> 33) as usize % header_len;
        file[at] ^= 1 << (state >> 29 & 7);
        if let Ok(mut model) = load(&[file], Backend::Cpu) {
            loaded += 1;
            let _answer_or_error = generate(&mut model, vec![1, 2], 2);
        }
    }
    assert!((1..300).contains(&loaded), "{loaded} of 300 changed files loaded");
}
