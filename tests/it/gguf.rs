//! Sound GGUF files: everything a file says is read as it says it, whole, in pieces and in parts.

use hanzo_edge::format::gguf::shard_names;
use hanzo_edge::format::{Metadata, Strings, Value};
use hanzo_edge::quant::{BLOCK_FORMATS, pack_rows, unpack_rows};

use crate::support::gguf_builder::{GgufBuilder, list, number, numbers, string, strings};
use crate::support::open::{header, model};
use crate::support::tiny_model::{TinyModel, VOCAB};

fn every_type() -> GgufBuilder {
    let nested = list(9, 2, [numbers(&[1u8, 2]).bytes, strings(&["a", ""]).bytes].concat());
    GgufBuilder::default()
        .field("u8", number(200u8))
        .field("i8", number(-3i8))
        .field("u16", number(60_000u16))
        .field("i16", number(-300i16))
        .field("u32", number(4_000_000_000u32))
        .field("i32", number(-70_000i32))
        .field("f32", number(0.5f32))
        .field("bool", number(true))
        .field("string", string("héllo"))
        .field("u64", number(u64::MAX))
        .field("i64", number(i64::MIN))
        .field("f64", number(1e300f64))
        .field("u8s", numbers(&[1u8, 2]))
        .field("i8s", numbers(&[-1i8]))
        .field("u16s", numbers(&[1u16]))
        .field("i16s", numbers(&[-1i16]))
        .field("u32s", numbers(&[7u32, 8]))
        .field("i32s", numbers(&[-7i32, 8]))
        .field("f32s", numbers(&[0.25f32]))
        .field("bools", numbers(&[true, false]))
        .field("strings", strings(&["x", "", "yz"]))
        .field("u64s", numbers(&[u64::MAX]))
        .field("i64s", numbers(&[i64::MIN]))
        .field("f64s", numbers(&[-1.5f64]))
        .field("nothing", numbers::<f32>(&[]))
        .field("nested", nested)
}

fn metadata(file: &GgufBuilder) -> Metadata {
    header(&file.build(), false).unwrap().metadata
}

#[test]
fn every_metadata_type_is_read_in_both_versions() {
    for version in [2, 3] {
        let metadata = metadata(&GgufBuilder { version, ..every_type() });
        let shown: Vec<String> = metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            shown.join(" "),
            "u8=200 i8=-3 u16=60000 i16=-300 u32=4000000000 i32=-70000 f32=0.5 bool=true string=\"héllo\" \
             u64=18446744073709551615 i64=-9223372036854775808 f64=1000000000000000000000000000000000000000000000000000\
             00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
             00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
             00000000000000000000000000000000000 u8s=[u8; 2] i8s=[i8; 1] u16s=[u16; 1] i16s=[i16; 1] u32s=[u32; 2] \
             i32s=[i32; 2] f32s=[f32; 1] bools=[bool; 2] strings=[string; 3] u64s=[u64; 1] i64s=[i64; 1] f64s=[f64; 1] \
             nothing=[f32; 0] nested=[array; 2]"
        );
        let strings = metadata.require::<&Strings>("strings").unwrap();
        assert_eq!(strings.iter().collect::<Vec<_>>(), [b"x".as_slice(), b"", b"yz"]);
    }
}

#[test]
fn integers_are_read_from_any_width_that_holds_them() {
    let metadata = metadata(&every_type());
    assert_eq!(metadata.get::<u32>("u8").unwrap(), Some(200));
    assert_eq!(metadata.get::<i32>("i16").unwrap(), Some(-300));
    assert_eq!(metadata.get::<u64>("u64").unwrap(), Some(u64::MAX));
    assert_eq!(metadata.get::<Vec<u32>>("u32s").unwrap(), Some(vec![7, 8]));
    assert_eq!(metadata.get::<Vec<u32>>("u16").unwrap(), Some(vec![60_000]));
    assert_eq!(metadata.get::<u32>("absent").unwrap(), None);
}

#[test]
fn a_wrong_type_names_key_expectation_and_find() {
    let metadata = metadata(&every_type());
    let cases = [
        (metadata.get::<u32>("i32").map(|_| ()), "i32: expected u32, found i32 -70000"),
        (metadata.get::<u32>("u64").map(|_| ()), "u64: expected u32, found u64 18446744073709551615"),
        (metadata.get::<f32>("string").map(|_| ()), "string: expected f32, found string \"héllo\""),
        (metadata.get::<&[f32]>("u8s").map(|_| ()), "u8s: expected an array of f32, found an array of 2 u8"),
        (metadata.get::<&str>("bools").map(|_| ()), "bools: expected a UTF-8 string, found an array of 2 bool"),
        (
            metadata.get::<Vec<u32>>("i32s").map(|_| ()),
            "i32s: expected u32 or an array of u32, found an array of 2 i32",
        ),
        (metadata.require::<bool>("absent").map(|_| ()), "absent: expected bool, found no such key"),
    ];
    for (result, message) in cases {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
}

#[test]
fn a_forgotten_fact_is_gone_and_the_others_stay() {
    let mut metadata = metadata(&every_type());
    metadata.forget("u8");
    metadata.forget("absent");
    assert_eq!(metadata.value("u8"), None);
    assert_eq!(metadata.get::<i32>("i8").unwrap(), Some(-3));
    assert_eq!(metadata.value("nested").unwrap().to_string(), "[array; 2]");
    assert_eq!(metadata.iter().len(), 25);
}

#[test]
fn tensors_of_every_format_lie_where_their_data_is() {
    let mut file = GgufBuilder { alignment: 64, ..GgufBuilder::default() }.field("general.alignment", number(64u32));
    for (index, format) in BLOCK_FORMATS.iter().enumerate() {
        let data = vec![index as u8; 3 * 512 / format.block_len * format.block_bytes];
        file = file.tensor(format.name, &[3, 512], format.ggml_id, data);
    }
    let bytes = file.build();
    let model = model(std::slice::from_ref(&bytes)).unwrap();
    assert_eq!(model.tensors().len(), BLOCK_FORMATS.len());
    for (index, format) in BLOCK_FORMATS.iter().enumerate() {
        let tensor = model.require_tensor(format.name).unwrap();
        assert_eq!((tensor.shape.as_slice(), tensor.format.name), ([3, 512].as_slice(), format.name));
        assert_eq!((tensor.rows(), tensor.columns()), (3, 512));
        assert_eq!(tensor.range.start % 64, 0);
        let data = &bytes[tensor.range.start as usize..tensor.range.end as usize];
        assert!(data.len() == tensor.row_bytes() * 3 && data.iter().all(|&byte| byte == index as u8));
        let rows = tensor.rows_range(1..3).unwrap();
        assert_eq!(rows, tensor.range.start + tensor.row_bytes() as u64..tensor.range.end);
        assert!(tensor.rows_range(1..4).is_err() && tensor.rows_range(0..usize::MAX).is_err());
    }
    assert_eq!(model.require_tensor("absent").unwrap_err().path().unwrap(), "absent");
}

#[test]
fn axes_are_outermost_first_and_a_scalar_has_none() {
    let file = GgufBuilder::default().tensor("t", &[2, 3, 4], 0, vec![0; 96]).tensor("scalar", &[], 0, vec![0; 4]);
    let model = model(&[file.build()]).unwrap();
    let tensor = model.require_tensor("t").unwrap();
    assert_eq!((tensor.shape.as_slice(), tensor.rows(), tensor.columns()), ([2, 3, 4].as_slice(), 6, 4));
    let scalar = model.require_tensor("scalar").unwrap();
    assert_eq!((scalar.shape.len(), scalar.rows(), scalar.columns()), (0, 1, 1));
    assert_eq!(model.weight_bytes(), 100);
}

#[test]
fn a_header_longer_than_the_first_prefix_is_read_in_growing_pieces() {
    let words: Vec<String> = (0..100_000).map(|id| format!("token number {id}")).collect();
    let file = GgufBuilder::default()
        .field("tokenizer.ggml.tokens", strings(&words))
        .field("after", number(1u32))
        .tensor("t", &[32], 0, vec![0; 128])
        .build();
    for streamed in [false, true] {
        let header = header(&file, streamed).unwrap();
        assert_eq!(header.metadata.get::<u32>("after").unwrap(), Some(1));
        assert_eq!(header.metadata.get_strings("tokenizer.ggml.tokens").unwrap().unwrap(), words);
        assert_eq!(header.end(), file.len() as u64);
    }
}

#[test]
fn every_prefix_asks_for_more_or_is_enough() {
    let file = TinyModel::new("llama", "q4_1", 1).build();
    let data_start = header(&file, false).unwrap().data_start as usize;
    for len in (0..data_start).step_by(7).chain(data_start - 40..data_start) {
        use hanzo_edge::format::{Parsed, parse};
        match parse(&file[..len], Some(file.len() as u64)).unwrap() {
            Parsed::NeedBytes(wanted) => assert!(wanted > len as u64 && wanted <= file.len() as u64),
            Parsed::Header(header) => assert!(header.data_start as usize - len < 32, "enough at {len} of {data_start}"),
        }
    }
}

#[test]
fn parts_in_any_order_are_the_whole_model() {
    let whole = TinyModel::new("llama", "q8_0", 5).builder();
    let expected = model(&[whole.build()]).unwrap();
    let parts: Vec<Vec<u8>> = whole.split(3).iter().map(GgufBuilder::build).collect();
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let files: Vec<Vec<u8>> = order.iter().map(|&part: &usize| parts[part].clone()).collect();
        let joined = model(&files).unwrap();
        assert_eq!((joined.n_shards, joined.tensors().len()), (3, expected.tensors().len()));
        assert_eq!(joined.metadata.value("general.architecture"), Some(&Value::String(b"llama".to_vec())));
        for (found, expected) in joined.tensors().iter().zip(expected.tensors()) {
            assert_eq!((&found.name, &found.shape, found.format), (&expected.name, &expected.shape, expected.format));
            let bytes = &files[found.shard][found.range.start as usize..found.range.end as usize];
            let whole = &whole.build()[expected.range.start as usize..expected.range.end as usize];
            assert!(bytes == whole, "{}", found.name);
        }
    }
}

#[test]
fn ten_parts_do_not_sort_as_text() {
    let whole = TinyModel::new("llama", "f32", 5).builder();
    let mut parts: Vec<Vec<u8>> = whole.split(11).iter().map(GgufBuilder::build).collect();
    parts.sort();
    parts.swap(2, 10);
    assert_eq!(model(&parts).unwrap().tensors().len(), whole.tensors.len());
}

#[test]
fn names_of_the_other_parts_follow_from_one() {
    let names = shard_names("big-00002-of-00003.gguf").unwrap();
    assert_eq!(names, ["big-00001-of-00003.gguf", "big-00002-of-00003.gguf", "big-00003-of-00003.gguf"]);
    let none =
        ["big.gguf", "big-00004-of-00003.gguf", "big-00000-of-00003.gguf", "big-2-of-3.gguf", "a-+0001-of-00002.gguf"];
    assert!(none.iter().all(|name| shard_names(name).is_none()));
    assert!(shard_names("big-00001-of-99999.gguf").is_none());
}

#[test]
fn tiny_models_are_made_from_their_seed_alone() {
    for architecture in ["llama", "qwen3"] {
        let make = |seed| TinyModel::new(architecture, "q4_0", seed).build();
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        let model = model(&[make(1)]).unwrap();
        assert_eq!(model.require_tensor("token_embd.weight").unwrap().shape, [VOCAB as usize, 64]);
        assert_eq!(model.tensor("blk.1.attn_q_norm.weight").is_some(), architecture == "qwen3");
        let tokens = model.metadata.get_strings("tokenizer.ggml.tokens").unwrap().unwrap();
        assert_eq!(tokens.len() as u64, VOCAB);
    }
    let bare = TinyModel { tokenizer: false, ..TinyModel::new("llama", "f16", 1) };
    assert!(model(&[bare.build()]).unwrap().metadata.value("tokenizer.ggml.tokens").is_none());
}

#[test]
fn tiny_models_of_every_format_pack_to_about_their_values() {
    for format in BLOCK_FORMATS {
        let file = TinyModel::new("llama", format.name, 9).build();
        let model = model(std::slice::from_ref(&file)).unwrap();
        for tensor in model.tensors() {
            let bytes = &file[tensor.range.start as usize..tensor.range.end as usize];
            let (rows, columns) = (tensor.rows(), tensor.columns());
            let (mut decoded, mut unpacked) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
            tensor.format.decode(bytes, &mut decoded).unwrap();
            unpack_rows(&pack_rows(tensor.format, bytes, rows, columns).unwrap(), &mut unpacked).unwrap();
            let power: f32 = decoded.iter().map(|value| value * value).sum();
            let error: f32 = decoded.iter().zip(&unpacked).map(|(a, b)| (a - b) * (a - b)).sum();
            assert!(power > 0.0 && power.is_finite(), "{} {}", format.name, tensor.name);
            // Rounding scales and biases that are products to f16, 2^-12 of each at most, which may be larger than
            // their sum.
            assert!(error <= power * 1e-6, "{} {}: {error} of {power}", format.name, tensor.name);
        }
    }
}
