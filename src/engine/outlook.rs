//! What a model will take, told from the headers of its files before a weight is read.

use super::capacity::least_context;
use super::config::EdgeConfig;
use super::loader::{Planned, memory_for};
use super::model::Rejection;
use super::weights::HeldWeights;
use crate::backend::{BackendRow, Machine, MemoryUse};
use crate::error::{Error, ErrorKind, Result};
use crate::format::ModelFile;
use crate::models;
use std::collections::{BTreeMap, VecDeque};

/// What loading a model would come to.
#[derive(Debug)]
pub struct Outlook {
    /// The backend that would run it.
    pub backend: &'static str,
    /// Those before it that would not, and those that the caller ruled out.
    pub rejected: Vec<Rejection>,
    /// The scheme that its weights are quantized by, or the format of most of them.
    pub quantization: &'static str,
    /// Tokens of context.
    pub context_tokens: usize,
    /// Bytes that it would hold.
    pub memory: MemoryUse,
    /// Why it does not fit: `OutOfMemory` or `Limits`.
    pub fault: Option<Error>,
    /// Bytes that each file has at least.
    pub file_bytes: Vec<u64>,
}

impl Outlook {
    /// Plans the model on the first of the `candidates` whose limits allow it, or else says why none does.
    pub(super) fn new(
        file: &ModelFile,
        config: &EdgeConfig,
        (candidates, mut rejected): (&VecDeque<&'static BackendRow>, Vec<Rejection>),
        machine: &Machine,
    ) -> Result<Self> {
        let early = zeros(file)?;
        let mut last = None;
        for row in candidates {
            let memory = memory_for(row, config);
            let (planned, short) = match Planned::new(file, &early, config, memory) {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                    (Planned::new(file, &early, &least(file, config)?, 0)?, Some(error))
                }
                planned => (planned?, None),
            };
            let (memory, fault) = match (row.estimate)(machine, &planned.request) {
                Ok(memory) => (memory, short.or_else(|| no_room(memory, machine))),
                Err(error) => {
                    let weights_bytes = planned.weights.bytes;
                    (MemoryUse { weights_bytes, ..MemoryUse::default() }, Some(error))
                }
            };
            let found = Self {
                backend: row.name,
                rejected: rejected.clone(),
                quantization: main_format(file, &planned.weights),
                context_tokens: planned.request.capacity,
                memory,
                fault,
                file_bytes: file_bytes(file),
            };
            let Some(fault) = &found.fault else { return Ok(found) };
            rejected.push(Rejection { backend: row.name.to_owned(), reason: fault.to_string() });
            last = Some(found);
        }
        last.ok_or_else(|| {
            let reasons = Rejection::list(&rejected);
            Error::unsupported(format!("no backend is left to run this model ({reasons})"))
        })
    }
}

/// The same wishes with the fewest tokens of context that the user would take, and without a limit of memory.
fn least(file: &ModelFile, config: &EdgeConfig) -> Result<EdgeConfig> {
    let max_context_tokens = least_context(file, config.max_context_tokens)?;
    Ok(EdgeConfig { max_context_tokens, max_memory_bytes: 0, ..config.clone() })
}

/// Zeros in place of the small tensors that shape the graph: its sizes do not depend on their values.
fn zeros(file: &ModelFile) -> Result<Vec<(String, Vec<f32>)>> {
    let zero = |name: &'static str| {
        let tensor = file.require_tensor(name)?;
        Ok((name.to_owned(), vec![0.0; tensor.rows() * tensor.columns()]))
    };
    models::early_tensors(file).map(zero).collect()
}

/// Why so much memory cannot be had on this machine.
fn no_room(memory: MemoryUse, machine: &Machine) -> Option<Error> {
    let (total, addressed) = (memory.total(), memory.total() - memory.gpu_bytes);
    let most = machine.memory_bytes.unwrap_or(u64::MAX);
    if total > most {
        return Some(Error::out_of_memory(format!("the model needs {total} bytes of memory; this device has {most}")));
    }
    let most = usize::MAX as u64;
    (addressed > most).then(|| {
        Error::out_of_memory(format!(
            "the model needs {addressed} bytes of memory; at most {most} can be addressed here"
        ))
    })
}

/// The scheme by which weights are quantized anew, or the name of the format that most bytes of the file's are in.
fn main_format(file: &ModelFile, held: &HeldWeights) -> &'static str {
    if held.quantization != "none" {
        return held.quantization;
    }
    let mut bytes: BTreeMap<&'static str, u64> = BTreeMap::new();
    for tensor in file.tensors() {
        *bytes.entry(tensor.format.name).or_default() += tensor.range.end - tensor.range.start;
    }
    bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map_or("none", |(name, _)| name)
}

/// Bytes that each file has at least.
fn file_bytes(file: &ModelFile) -> Vec<u64> {
    let mut bytes = vec![0; file.n_shards];
    for tensor in file.tensors() {
        if let Some(bytes) = bytes.get_mut(tensor.shard) {
            *bytes = tensor.range.end.max(*bytes);
        }
    }
    bytes
}
