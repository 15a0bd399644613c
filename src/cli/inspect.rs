//! `inspect`: what is in a model file, from its header alone, and how its weights would be held.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use hanzo_edge::bytes::{self, ByteSource};
use hanzo_edge::engine::{Quantization, held_as};
use hanzo_edge::error::{Context, Error, Result};
use hanzo_edge::format::{self, FileHeader, Parsed, TensorInfo, Value};
use serde_json::json;

use crate::output;

/// The command's options.
#[derive(clap::Args)]
pub struct Args {
    /// A model file
    file: PathBuf,
    /// Show how each weight would be held: auto, none, afq-2, afq-3, afq-4, afq-6, afq-8, int8
    #[arg(long, value_name = "NAME", value_parser = Quantization::from_str)]
    quantize: Option<Quantization>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Layout and bytes of weights by their names.
type Held = BTreeMap<String, (String, u64)>;

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let file = bytes::open(&args.file)?;
    let (header, held) = read(&file, args.quantize).at(|| args.file.display().to_string())?;
    if args.json { print_json(&header, held.as_ref()) } else { print(&header, held.as_ref()) }
}

fn read(file: &ByteSource, quantization: Option<Quantization>) -> Result<(FileHeader, Option<Held>)> {
    let held = quantization.map(|quantization| -> Result<Held> {
        let model = format::join(vec![header(file)?])?;
        let weights = held_as(&model, quantization)?.into_iter();
        Ok(weights.map(|(name, layout, bytes)| (name, (layout.name(), bytes))).collect())
    });
    Ok((header(file)?, held.transpose()?))
}

fn header(file: &ByteSource) -> Result<FileHeader> {
    let mut wanted = 64 << 10;
    loop {
        let prefix = file.prefix(wanted);
        match format::parse(prefix, Some(file.len()))? {
            Parsed::Header(header) => {
                header.check_len(file.len())?;
                return Ok(header);
            }
            Parsed::NeedBytes(more) if more > prefix.len() as u64 => wanted = more,
            Parsed::NeedBytes(_) => return Err(Error::malformed("the file ends inside its header")),
        }
    }
}

fn tensor_bytes(tensor: &TensorInfo) -> u64 {
    tensor.range.end - tensor.range.start
}

fn weight_bytes(header: &FileHeader) -> u64 {
    header.tensors.iter().map(tensor_bytes).sum()
}

fn held_bytes(held: &Held) -> u64 {
    held.values().map(|(_, bytes)| bytes).sum()
}

fn print(header: &FileHeader, held: Option<&Held>) -> Result<()> {
    output::line(format!(
        "{} version {}: {} tensors, {}, aligned to {} bytes",
        header.format.name,
        header.version,
        header.tensors.len(),
        output::bytes(weight_bytes(header)),
        header.alignment
    ))?;
    if let Some(held) = held {
        output::line(format!("{} weights held in {}", held.len(), output::bytes(held_bytes(held))))?;
    }
    output::line("")?;
    output::table(
        &header.metadata.iter().map(|(key, value)| vec![key.to_owned(), value.to_string()]).collect::<Vec<_>>(),
    )?;
    output::line("")?;
    let mut rows = vec![["tensor", "shape", "format", "bytes"].map(str::to_owned).to_vec()];
    for tensor in &header.tensors {
        let shape = tensor.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
        rows.push(vec![tensor.name.clone(), shape, tensor.format.name.to_owned(), tensor_bytes(tensor).to_string()]);
    }
    if let Some(held) = held {
        rows[0].extend(["held as", "bytes"].map(str::to_owned));
        for row in &mut rows[1..] {
            let (layout, bytes) = held.get(&row[0]).cloned().unwrap_or_default();
            row.extend([layout, bytes.to_string()]);
        }
    }
    output::table(&rows)
}

fn print_json(header: &FileHeader, held: Option<&Held>) -> Result<()> {
    let metadata: serde_json::Map<_, _> =
        header.metadata.iter().map(|(key, value)| (key.to_owned(), as_json(value))).collect();
    let tensor = |tensor: &TensorInfo| {
        let mut row = json!({ "name": tensor.name, "shape": tensor.shape, "format": tensor.format.name, "bytes": tensor_bytes(tensor) });
        if let Some((layout, bytes)) = held.and_then(|held| held.get(&tensor.name)) {
            row["held"] = json!({ "layout": layout, "bytes": bytes });
        }
        row
    };
    let mut file = json!({
        "container": header.format.name,
        "version": header.version,
        "alignment": header.alignment,
        "weight_bytes": weight_bytes(header),
        "metadata": metadata,
        "tensors": header.tensors.iter().map(tensor).collect::<Vec<_>>(),
    });
    if let Some(held) = held {
        file["held_bytes"] = json!(held_bytes(held));
    }
    output::json(&file)
}

/// Numbers and strings as such; arrays, which may be vocabularies, by type and length.
fn as_json(value: &Value) -> serde_json::Value {
    match value {
        Value::U8(value) => json!(value),
        Value::I8(value) => json!(value),
        Value::U16(value) => json!(value),
        Value::I16(value) => json!(value),
        Value::U32(value) => json!(value),
        Value::I32(value) => json!(value),
        Value::U64(value) => json!(value),
        Value::I64(value) => json!(value),
        Value::F32(value) => json!(value),
        Value::F64(value) => json!(value),
        Value::Bool(value) => json!(value),
        Value::String(bytes) => json!(String::from_utf8_lossy(bytes)),
        Value::Array(_) => json!(value.to_string()),
    }
}
