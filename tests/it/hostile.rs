//! Damaged and hostile files: each gives one clear error, in bounded time and memory, and a sound file loads after it.

use std::time::{Duration, Instant};

use hanzo_edge::error::{Error, ErrorKind};
use hanzo_edge::format::{Parsed, parse};

use crate::support::gguf_builder::{GgufBuilder, Tensor, counted, list, number, numbers, string, strings};
use crate::support::open::{header, model};
use crate::support::tiny_model::TinyModel;

/// The error of a file, whether its length is known or not; then a sound file must still load.
fn refused(what: &str, file: &[u8]) -> Error {
    let started = Instant::now();
    let streamed = header(file, true).expect_err(what);
    let error = header(file, false).expect_err(what);
    assert_eq!(streamed.kind(), error.kind(), "{what}: {streamed} / {error}");
    assert!(started.elapsed() < Duration::from_secs(2), "{what} took {:?}", started.elapsed());
    header(&TinyModel::new("llama", "q4_0", 1).build(), false).expect("a sound file after a bad one");
    error
}

fn one_tensor(dims: &[u64], kind: u32, data: usize) -> GgufBuilder {
    let mut file = GgufBuilder::default();
    file.tensors.push(Tensor { name: "t".into(), dims: dims.to_vec(), kind, offset: None, data: vec![0; data] });
    file
}

#[test]
fn alignment_that_is_no_power_of_two_is_refused() {
    let with = |field| GgufBuilder::default().field("general.alignment", field).build();
    for value in [0u32, 3, 48, u32::MAX] {
        let error = refused("alignment", &with(number(value)));
        assert_eq!(error.to_string(), format!("general.alignment: expected a power of two, found {value}"));
    }
    for value in [1u32, 8, 32, 1 << 30] {
        assert!(header(&with(number(value)), false).unwrap().tensors.is_empty());
    }
    assert_eq!(header(&with(number(32i32)), false).unwrap().alignment, 32);
    for field in [number(32.0f32), string("32"), number(-32i32), numbers(&[32u32])] {
        assert_eq!(refused("alignment type", &with(field)).path().unwrap(), "general.alignment");
    }
    let far = GgufBuilder { tensors: one_tensor(&[8], 0, 32).tensors, ..GgufBuilder::default() };
    refused("data a GiB away", &far.field("general.alignment", number(1u32 << 30)).build());
}

#[test]
fn shapes_that_overflow_or_are_empty_are_refused() {
    for (dims, data, expected) in [
        (vec![1 << 32, 1 << 32], 0, "64 bits"),
        (vec![2, (1 << 63) + 2], 64, "64 bits"),
        (vec![1 << 62], 64, "64 bits"),
        (vec![u64::MAX], 64, "64 bits"),
        (vec![(1 << 61) - 8], 64, "file ends"),
        (vec![1152, (1 << 42) + 1], 64, "file ends"),
        (vec![0], 0, "at least 1"),
        (vec![4, 0, 4], 64, "at least 1"),
        (vec![1, 1, 1, 1, 1], 4, "at most 4 axes, found 5"),
        (vec![1 << 31], 64, "file ends"),
    ] {
        let error = refused("shape", &one_tensor(&dims, 0, data).build());
        assert!(error.message().contains(expected), "{dims:?}: {error}");
        assert_eq!(error.path().unwrap(), "t");
    }
    let error = refused("half a block", &one_tensor(&[33], 2, 36).build());
    assert!(error.message().contains("multiples of 32 elements for q4_0, found 33"), "{error}");
    let error = refused("unknown format", &one_tensor(&[32], 16, 36).build());
    assert_eq!(error.kind(), ErrorKind::UnsupportedModel);
    assert!(error.message().contains("q4_0") && error.message().contains("ggml type 16"), "{error}");
}

#[test]
fn axis_counts_do_not_allocate() {
    let mut file = one_tensor(&[32], 0, 128).build();
    let at = file.windows(9).position(|bytes| bytes == counted(b"t").as_slice()).unwrap() + 9;
    file[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(refused("axes", &file).message().contains("at most 4 axes"));
}

#[test]
fn claimed_counts_beyond_the_file_are_refused() {
    for claimed in [(1 << 60, 0), (0, 1 << 60), (u64::MAX, u64::MAX), (0, 2), (1, 0), (1 << 40, 1)] {
        let file = GgufBuilder { claimed: Some(claimed), ..GgufBuilder::default().field("a", number(1u32)) };
        refused("counts", &file.build());
    }
    for kind in 0..=12 {
        for count in [1 << 60, u64::MAX, 1 << 32, 4096] {
            let file = GgufBuilder::default().field("key", list(kind, count, vec![0; 64])).build();
            assert!(refused("array count", &file).to_string().starts_with("key"), "type {kind}, count {count}");
        }
    }
    for len in [1u64 << 63, u64::MAX, 1 << 32, 100] {
        let mut field = string("");
        field.bytes = len.to_le_bytes().to_vec();
        assert!(
            refused("string length", &GgufBuilder::default().field("key", field.clone()).build())
                .message()
                .contains("file ends")
        );
        let file = GgufBuilder::default().field("key", list(8, 1, field.bytes)).build();
        refused("string length in an array", &file);
    }
}

#[test]
fn a_length_that_is_not_known_does_not_make_the_parser_ask_for_everything() {
    let huge = GgufBuilder::default().field("key", list(0, 1 << 60, vec![0; 64])).build();
    assert!(parse(&huge, None).unwrap_err().message().contains("header of at most"));
    let many = GgufBuilder { claimed: Some((0, 1 << 24)), ..GgufBuilder::default() }.build();
    assert!(parse(&many, None).unwrap_err().message().contains("at most"));
    let large = GgufBuilder::default().field("key", list(0, 1 << 20, vec![0; 64])).build();
    assert!(matches!(parse(&large, None).unwrap(), Parsed::NeedBytes(1_048_577..3_000_000)));
}

#[test]
fn arrays_nested_without_end_are_refused() {
    for depth in [5usize, 100, 100_000] {
        let mut bytes = Vec::new();
        for _ in 0..depth {
            bytes.extend(9u32.to_le_bytes());
            bytes.extend(1u64.to_le_bytes());
        }
        bytes.extend([0; 64]);
        let error = refused("nested", &GgufBuilder::default().field("key", list(9, 1, bytes)).build());
        assert!(error.to_string().starts_with("key: expected arrays nested at most"), "{error}");
    }
    let wide = list(9, 1 << 20, [0u32.to_le_bytes().as_slice(), &0u64.to_le_bytes()].concat().repeat(1 << 20));
    assert!(refused("wide", &GgufBuilder::default().field("key", wide).build()).message().contains("at most"));
}

#[test]
fn doubled_and_nameless_entries_are_refused() {
    let doubled = GgufBuilder::default().field("key", number(1u32)).field("key", number(1u32)).build();
    assert_eq!(refused("doubled key", &doubled).to_string(), "key: expected each metadata key once, found it twice");
    refused("nameless key", &GgufBuilder::default().field("", number(1u32)).build());
    refused("key that is no UTF-8", &GgufBuilder::default().field(b"\xff\xfe", number(1u32)).build());
    refused("nameless tensor", &GgufBuilder::default().tensor("", &[8], 0, vec![0; 32]).build());
    let doubled = GgufBuilder::default().tensor("t", &[8], 0, vec![0; 32]).tensor("t", &[8], 0, vec![0; 32]);
    let error = model(&[doubled.build()]).unwrap_err();
    assert_eq!(error.to_string(), "t: expected each tensor once, found it twice");
}

#[test]
fn tensors_outside_the_file_or_inside_each_other_are_refused() {
    let two = GgufBuilder::default().tensor("a", &[64], 0, vec![0; 256]).tensor("b", &[8], 0, vec![0; 32]);
    for (offset, expected) in [
        (0, "inside that of \"a\""),
        (224, "inside that of \"a\""),
        (256 + 32, "file ends"),
        (1 << 62, "file ends"),
        (u64::MAX - 31, "64 bits"),
        (u64::MAX - 63, "64 bits"),
        (1, "multiples of 32"),
    ] {
        let mut file = two.clone();
        file.tensors[1].offset = Some(offset);
        let error = refused("offset", &file.build());
        assert!(error.to_string().starts_with("b: ") && error.message().contains(expected), "{offset}: {error}");
    }
}

#[test]
fn files_cut_short_anywhere_are_refused() {
    let file = TinyModel::new("qwen3", "q5_1", 3).build();
    for len in (0..file.len()).step_by(97).chain(file.len() - 3..file.len()) {
        let error = refused("cut", &file[..len]);
        assert_eq!(error.kind(), ErrorKind::MalformedFile, "{len}: {error}");
    }
}

#[test]
fn changed_bytes_never_panic() {
    let sound = TinyModel::new("llama", "q8_0", 4).build();
    let data_start = header(&sound, false).unwrap().data_start as usize;
    let (mut refusals, mut state) = (0, 1u64);
    for _ in 0..4000 {
        let mut file = sound.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % data_start;
            file[at] = [0, 1, 0x7f, 0x80, 0xff, (state >> 24) as u8][(state >> 21) as usize % 6];
        }
        refusals += usize::from(model(&[file]).is_err());
    }
    assert!(refusals > 100, "only {refusals} of the changed files were refused");
}

#[test]
fn other_versions_and_byte_orders_are_named() {
    for (version, expected) in
        [(1, "version 2 or 3, found 1"), (4, "found 4"), (3u32.swap_bytes(), "big-endian"), (0, "found 0")]
    {
        let error = refused("version", &GgufBuilder { version, ..GgufBuilder::default() }.build());
        assert!(error.message().contains(expected), "{error}");
        assert_eq!(error.kind(), ErrorKind::UnsupportedModel);
    }
}

#[test]
fn odd_types_and_bools_are_refused() {
    for kind in [13, 255, u32::MAX] {
        let mut field = number(1u32);
        field.kind = kind;
        assert!(
            refused("type", &GgufBuilder::default().field("key", field).build()).message().contains(&kind.to_string())
        );
        refused("element type", &GgufBuilder::default().field("key", list(kind, 1, vec![0; 8])).build());
    }
    let error = refused("bool", &GgufBuilder::default().field("key", list(7, 2, vec![1, 2])).build());
    assert!(error.message().contains("0 or 1, found 2"), "{error}");
}

#[test]
fn strings_that_are_no_utf8_are_named_with_their_place() {
    let file = GgufBuilder::default()
        .field("tokenizer.ggml.tokens", strings(&[b"good".as_slice(), b"\xff\xfe"]))
        .field("name", string(b"\xff"));
    let metadata = header(&file.build(), false).unwrap().metadata;
    let error = metadata.get_strings("tokenizer.ggml.tokens").unwrap_err();
    assert!(error.to_string().starts_with("tokenizer.ggml.tokens: expected UTF-8"), "{error}");
    assert!(error.message().contains("entry 1"), "{error}");
    assert!(metadata.get::<&str>("name").unwrap_err().message().contains("expected a UTF-8 string"));
}

#[test]
fn parts_missing_doubled_or_foreign_are_named() {
    let split = |seed| TinyModel::new("llama", "q4_0", seed).builder().split(3);
    let parts: Vec<Vec<u8>> = split(1).iter().map(GgufBuilder::build).collect();
    let joined = |files: &[&Vec<u8>]| model(&files.iter().map(|&file| file.clone()).collect::<Vec<_>>()).unwrap_err();
    let [first, second, third] = parts.as_slice() else { panic!("expected three parts") };
    for (files, kind, expected) in [
        (vec![first, second], ErrorKind::NotFound, "missing part 3 of 3"),
        (vec![second], ErrorKind::NotFound, "missing part 1, 3 of 3"),
        (vec![first, first, second], ErrorKind::InvalidArgument, "part 1 of 3 twice"),
        (vec![third, first, second, first], ErrorKind::InvalidArgument, "part 1 of 3 twice"),
        (vec![first, &TinyModel::new("llama", "q4_0", 1).build()], ErrorKind::InvalidArgument, "not a part"),
    ] {
        let error = joined(&files);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(expected), "{error}");
    }
    let qwen = TinyModel::new("qwen3", "q4_0", 1).builder();
    for foreign in [&qwen.split(3)[2], &qwen.split(4)[2], &split(1)[0].clone().replace("split.no", number(2u16))] {
        let error = joined(&[first, second, &foreign.build()]);
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::MalformedFile), "{error}");
    }
    let beyond = split(1)[0].clone().replace("split.no", number(3u16)).build();
    assert!(joined(&[&beyond, second, third]).message().contains("below 3, found 3"));
    let claims = split(1)[0].clone().replace("split.count", number(u64::MAX)).build();
    assert!(joined(&[&claims]).message().contains("missing part 2, 3, 4, 5, 6"));
}
