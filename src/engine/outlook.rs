//! What a model will take, told from the headers of its files before a weight is read.

use super::capacity::{Budget, fit, least};
use super::config::EdgeConfig;
use super::loader::Request;
use super::model::Rejection;
use crate::backend::{BackendRow, Machine, MemoryUse};
use crate::error::{Error, ErrorKind, Result};
use crate::format::ModelFile;
use crate::models;
use std::collections::BTreeMap;

/// What loading a model would come to.
#[derive(Debug)]
pub struct Outlook {
    /// The backend that would run it.
    pub backend: &'static str,
    /// Those before it that would not, and those that the caller ruled out.
    pub rejected: Vec<Rejection>,
    /// The format of most of its weights.
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
    /// Plans the model on the first of the `candidates` whose limits allow it.
    pub(super) fn new(
        file: &ModelFile,
        config: &EdgeConfig,
        (candidates, mut rejected): (&[&'static BackendRow], Vec<Rejection>),
        machine: &Machine,
    ) -> Result<Self> {
        let (context_tokens, mut fault) = capacity(file, config)?;
        let request = Request::new(file, &zeros(file)?, (context_tokens, config.kv_cache.kv_type()))?.load;
        let mut found = None;
        for row in candidates {
            match (row.estimate)(machine, &request) {
                Ok(memory) => {
                    found = Some((row.name, memory));
                    break;
                }
                Err(error) => {
                    rejected.push(Rejection { backend: row.name.to_owned(), reason: error.to_string() });
                    fault.get_or_insert(error);
                }
            }
        }
        let (backend, memory) = match (found, candidates.last()) {
            (Some((backend, memory)), _) => {
                // What only ruled out an earlier backend is no fault of the model's.
                fault =
                    fault.filter(|fault| fault.kind() == ErrorKind::OutOfMemory).or_else(|| no_room(memory, machine));
                (backend, memory)
            }
            (None, Some(row)) => (row.name, MemoryUse { weights_bytes: file.weight_bytes(), ..MemoryUse::default() }),
            (None, None) => {
                let reasons = Rejection::list(&rejected);
                return Err(Error::unsupported(format!("no backend is left to run this model ({reasons})")));
            }
        };
        rejected.retain(|row| row.backend != backend);
        let (quantization, file_bytes) = (main_format(file), file_bytes(file));
        Ok(Self { backend, rejected, quantization, context_tokens, memory, fault, file_bytes })
    }
}

/// Tokens of context, and why they do not fit the user's memory.
fn capacity(file: &ModelFile, config: &EdgeConfig) -> Result<(usize, Option<Error>)> {
    let budget = Budget { context: config.max_context_tokens, memory: config.max_memory_bytes };
    match fit(file, &budget, config.kv_cache.kv_type()) {
        Ok(tokens) => Ok((tokens, None)),
        Err(error) if error.kind() == ErrorKind::OutOfMemory => Ok((least(file, &budget)?, Some(error))),
        Err(error) => Err(error),
    }
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

/// The name of the format that most bytes of the weights are in.
fn main_format(file: &ModelFile) -> &'static str {
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
