//! A GGUF file with its matrices in another block format, made in memory: the default model's file has 5 bits a weight,
//! and tests of quantization want more.

use hanzo_edge::format::TensorInfo;
use hanzo_edge::quant::block_format_by_name;

use super::gguf_builder::GgufBuilder;
use super::open;

/// The file with every tensor that is not plain floats in `format`. Metadata is taken over as it is.
pub fn converted(file: &[u8], format: &str) -> Vec<u8> {
    let format = block_format_by_name(format).expect("a known format");
    let header = open::header(file, false).expect("a model file");
    let mut model = GgufBuilder::default();
    for tensor in &header.tensors {
        let bytes = &file[tensor.range.start as usize..tensor.range.end as usize];
        let shape: Vec<u64> = tensor.shape.iter().map(|size| *size as u64).collect();
        if tensor.format.unpack.is_none() {
            model = model.tensor(&tensor.name, &shape, tensor.format.ggml_id, bytes.to_vec());
            continue;
        }
        let mut values = vec![0.0; tensor.rows() * tensor.columns()];
        tensor.format.decode(bytes, &mut values).expect("whole blocks");
        model = model.tensor(&tensor.name, &shape, format.ggml_id, format.encode(&values).expect("whole blocks"));
    }
    with_metadata_of(file, &header.tensors, &model.build())
}

/// Puts the metadata of `file`, up to the description of its first tensor, into `made`, which has none but the same
/// tensors.
fn with_metadata_of(file: &[u8], tensors: &[TensorInfo], made: &[u8]) -> Vec<u8> {
    const COUNTS: usize = 24;
    let first = &tensors[0].name;
    let name = [&(first.len() as u64).to_le_bytes(), first.as_bytes()].concat();
    let metadata_end = file.windows(name.len()).position(|window| window == name).expect("the first tensor");
    // Length and name, number of sizes and the sizes, format, offset.
    let described: usize =
        tensors.iter().map(|tensor| 8 + tensor.name.len() + 4 + 8 * tensor.shape.len() + 4 + 8).sum();
    let data_start = open::header(made, false).expect("what was made").data_start as usize;
    let mut joined = made[..16].to_vec();
    joined.extend(&file[16..metadata_end]);
    joined.extend(&made[COUNTS..COUNTS + described]);
    joined.resize(joined.len().next_multiple_of(32), 0);
    joined.extend(&made[data_start..]);
    joined
}
