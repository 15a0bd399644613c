//! Loads a model as a machine that is pulled: it says which bytes it needs next and is given them. So one loader
//! serves a mapped file natively and a download on the web, and never holds a whole file.

use super::capacity::prefix_budget;
use super::config::EdgeConfig;
use super::model::{Clock, LoadedModel, ModelInfo, Rejection};
use super::outlook::Outlook;
use super::text::Text;
use super::weights::{Choice, HeldWeights};
use crate::backend::{BackendRow, Executable, LoadRequest, Machine, OpenOptions};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::format::{self, FileHeader, ModelFile, Parsed};
use crate::generate::TokenCache;
use crate::graph::Graph;
use crate::quantize::Activations;
use crate::{models, optimize};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Most bytes of a weight asked for at once.
const PART_BYTES: usize = 8 << 20;

/// What the loader needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The first `bytes` bytes of file `shard`, or all of it where it is shorter.
    Prefix {
        /// Index of the file.
        shard: usize,
        /// Bytes from its start.
        bytes: u64,
    },
    /// These bytes of file `shard`. Ranges of a file ascend.
    Range {
        /// Index of the file.
        shard: usize,
        /// The bytes.
        range: Range<u64>,
    },
    /// A call of [`Loader::open`].
    Open,
    /// A call of [`Loader::finish`].
    Finish,
}

/// Rows of a weight to be read.
#[derive(Debug, Clone)]
struct Part {
    weight: usize,
    first_row: usize,
    shard: usize,
    range: Range<u64>,
}

/// A small tensor read before the graph is built.
struct Early {
    name: &'static str,
    shard: usize,
    range: Range<u64>,
}

/// A model under way to a device.
pub struct Loader {
    config: EdgeConfig,
    lengths: Vec<Option<u64>>,
    prefix_bytes: u64,
    headers: Vec<FileHeader>,
    file: Option<(ModelFile, Text)>,
    early_needs: VecDeque<Early>,
    early: Vec<(String, Vec<f32>)>,
    candidates: VecDeque<&'static BackendRow>,
    rejected: Vec<Rejection>,
    clock: Clock,
    opened: Option<Opened>,
}

/// A device with the plan for the model.
struct Opened {
    row: &'static BackendRow,
    executable: Box<dyn Executable>,
    graph: Arc<Graph>,
    capacity: usize,
    weights: HeldWeights,
    parts: VecDeque<Part>,
}

/// What a device is asked to run, and how it is told.
pub(super) struct Planned {
    pub request: LoadRequest,
    pub weights: HeldWeights,
    parts: VecDeque<Part>,
}

impl Planned {
    /// Chooses how the weights are held within `memory` bytes (0 is no limit); builds and optimizes the graph. `early` has
    /// the values of the small tensors that shape it.
    pub fn new(file: &ModelFile, early: &[(String, Vec<f32>)], config: &EdgeConfig, memory: u64) -> Result<Self> {
        let choice = Choice::new(file, early, config, memory)?;
        let mut graph = models::build(file, early, choice.capacity)?;
        optimize::optimize(&mut graph)?;
        let layouts = choice.layouts(file, &graph)?;
        let (weights, parts) = (choice.held(file, &graph, &layouts)?, parts(file, &graph)?);
        let request = LoadRequest {
            graph: Arc::new(graph),
            layouts,
            capacity: choice.capacity,
            kv_type: config.kv_cache.kv_type(),
            activations: choice.scheme.map_or(Activations::Blocks, |scheme| scheme.activations),
        };
        Ok(Self { request, weights, parts })
    }
}

impl Loader {
    /// Starts to load a model of files with these lengths (`None` where unknown), in any order of shards.
    /// `rejected` are backends that the caller has ruled out already, with the reason.
    pub fn new(config: EdgeConfig, lengths: Vec<Option<u64>>, rejected: Vec<Rejection>, clock: Clock) -> Result<Self> {
        if lengths.is_empty() {
            return Err(Error::invalid_argument("expected at least one model file, found none"));
        }
        let mut candidates = config.backend.candidates()?;
        candidates.retain(|row| rejected.iter().all(|rejection| rejection.backend != row.name));
        Ok(Self {
            config,
            lengths,
            prefix_bytes: 0,
            headers: Vec::new(),
            file: None,
            early_needs: VecDeque::new(),
            early: Vec::new(),
            candidates: candidates.into(),
            rejected,
            clock,
            opened: None,
        })
    }

    /// What is needed next.
    #[must_use]
    pub fn need(&self) -> Need {
        if self.file.is_none() {
            let wanted = self.prefix_bytes.max(64 << 10);
            let shard = self.headers.len();
            let bytes = self.lengths.get(shard).copied().flatten().map_or(wanted, |len| wanted.min(len));
            return Need::Prefix { shard, bytes };
        }
        if let Some(early) = self.early_needs.front() {
            return Need::Range { shard: early.shard, range: early.range.clone() };
        }
        match self.opened.as_ref().map(|opened| opened.parts.front()) {
            None => Need::Open,
            Some(Some(part)) => Need::Range { shard: part.shard, range: part.range.clone() },
            Some(None) => Need::Finish,
        }
    }

    /// Gives the bytes that [`Loader::need`] asked for.
    pub fn supply(&mut self, bytes: &[u8]) -> Result<()> {
        match self.need() {
            Need::Prefix { shard, bytes: wanted } => self.supply_prefix(shard, wanted, bytes),
            Need::Range { range, .. } => {
                let expected = range.end - range.start;
                if bytes.len() as u64 != expected {
                    return Err(Error::malformed(format!("expected {expected} bytes, found {}", bytes.len())));
                }
                self.supply_range(bytes)
            }
            Need::Open | Need::Finish => Err(Error::internal("no bytes were asked for")),
        }
    }

    fn supply_prefix(&mut self, shard: usize, wanted: u64, bytes: &[u8]) -> Result<()> {
        if (bytes.len() as u64) < wanted {
            self.lengths[shard] = Some(bytes.len() as u64);
        }
        match format::parse(bytes, self.lengths[shard])? {
            Parsed::NeedBytes(next) => {
                if next <= bytes.len() as u64 {
                    return Err(Error::malformed(format!(
                        "the file ends after {} bytes, inside its header",
                        bytes.len()
                    )));
                }
                self.prefix_bytes = next;
                return Ok(());
            }
            Parsed::Header(header) => self.headers.push(header),
        }
        self.prefix_bytes = 0;
        if self.headers.len() == self.lengths.len() {
            self.join()?;
        }
        Ok(())
    }

    /// Every header is there: checks what can be checked before the weights are read.
    fn join(&mut self) -> Result<()> {
        let mut file = format::join(std::mem::take(&mut self.headers))?;
        models::architecture(&file)?;
        let text = Text::read(&mut file, self.config.chat_template.as_deref())?;
        text.check_rows(models::Hparams::read(&file)?.vocab_size)?;
        for name in models::early_tensors(&file) {
            let tensor = file.require_tensor(name)?;
            if tensor.range.end - tensor.range.start > PART_BYTES as u64 {
                return Err(Error::malformed("expected a small tensor").at(name));
            }
            self.early_needs.push_back(Early { name, shard: tensor.shard, range: tensor.range.clone() });
        }
        self.file = Some((file, text));
        Ok(())
    }

    fn supply_range(&mut self, bytes: &[u8]) -> Result<()> {
        let (file, _) = self.file.as_ref().ok_or_else(|| Error::internal("no header yet"))?;
        if let Some(early) = self.early_needs.pop_front() {
            let tensor = file.require_tensor(early.name)?;
            let mut values = vec![0.0; tensor.rows() * tensor.columns()];
            (tensor.format.dequantize)(bytes, &mut values);
            self.early.push((early.name.to_owned(), values));
            return Ok(());
        }
        let opened = self.opened.as_mut().ok_or_else(|| Error::internal("no device yet"))?;
        let part = opened.parts.pop_front().ok_or_else(|| Error::internal("every weight is loaded"))?;
        let name = &opened.graph.weights[part.weight].name;
        let format = file.require_tensor(name)?.format;
        let written = opened.executable.write_weight(part.weight, part.first_row, format, bytes).at(|| name.as_str());
        let row = opened.row;
        written.or_else(|error| {
            self.opened = None;
            self.step_down(row, error)
        })
    }

    /// Notes why a backend does not run the model; fails with its error when no other is left.
    fn step_down(&mut self, row: &BackendRow, error: Error) -> Result<()> {
        if !self.candidates.is_empty() {
            self.rejected.push(Rejection { backend: row.name.to_owned(), reason: error.to_string() });
            return Ok(());
        }
        if self.rejected.is_empty() {
            return Err(error.at(row.name));
        }
        let message = format!("{}: {error} (before it, {})", row.name, Rejection::list(&self.rejected));
        Err(Error::new(error.kind(), message).because(error))
    }

    /// What the model would take on such a machine. To be asked once no more prefixes are needed, before
    /// [`Loader::open`].
    pub fn outlook(&self, machine: &Machine) -> Result<Outlook> {
        let (file, _) = self.file.as_ref().ok_or_else(|| Error::internal("no header yet"))?;
        Outlook::new(file, &self.config, (&self.candidates, self.rejected.clone()), machine)
    }

    /// Opens the first backend that takes the model.
    pub async fn open(&mut self) -> Result<()> {
        let options = OpenOptions {
            threads: (self.config.threads > 0).then_some(self.config.threads),
            high_performance: true,
            allow_fallback_adapter: self.config.backend.name().is_some(),
            now_ms: self.clock.now_ms,
        };
        while let Some(row) = self.candidates.pop_front() {
            let memory = memory_for(row, &self.config);
            let (file, _) = self.file.as_ref().ok_or_else(|| Error::internal("no header yet"))?;
            let Planned { request, weights, parts } = match Planned::new(file, &self.early, &self.config, memory) {
                // The next backend may have more room; what the user allows is the same everywhere.
                Err(error) if error.kind() == ErrorKind::OutOfMemory && memory != self.config.max_memory_bytes => {
                    self.step_down(row, error)?;
                    continue;
                }
                planned => planned?,
            };
            let (graph, capacity) = (Arc::clone(&request.graph), request.capacity);
            match (row.open)(options, request).await {
                Ok(executable) => {
                    self.opened = Some(Opened { row, executable, graph, capacity, weights, parts });
                    return Ok(());
                }
                Err(error) => self.step_down(row, error)?,
            }
        }
        Err(Error::unsupported(format!("no backend is left to run this model ({})", Rejection::list(&self.rejected))))
    }

    /// Compiles and tests the kernels. `None` means that the backend failed its test and the next one was chosen:
    /// go on with [`Loader::need`].
    pub async fn finish(&mut self) -> Result<Option<LoadedModel>> {
        let mut opened = self.opened.take().ok_or_else(|| Error::internal("no device yet"))?;
        if let Err(error) = opened.executable.finish().await {
            self.step_down(opened.row, error)?;
            return Ok(None);
        }
        let (file, text) = self.file.take().ok_or_else(|| Error::internal("no header yet"))?;
        let held = (opened.capacity, opened.weights);
        let info = ModelInfo::new(&file, opened.row.name, held, std::mem::take(&mut self.rejected))?;
        let EdgeConfig { prefix_cache_bytes, max_memory_bytes, .. } = self.config;
        let budget = prefix_budget(prefix_cache_bytes, max_memory_bytes, opened.executable.memory());
        let cache = TokenCache::with_budget(budget);
        Ok(Some(LoadedModel::new(opened.executable, text, info, cache, self.clock)))
    }

    /// The file's facts, once its header is read.
    #[must_use]
    pub fn file(&self) -> Option<&ModelFile> {
        self.file.as_ref().map(|(file, _)| file)
    }
}

/// Bytes that weights and caches may take on a backend: the least of what it has room for and the user allows; 0 is no
/// limit.
pub(super) fn memory_for(row: &BackendRow, config: &EdgeConfig) -> u64 {
    let wished = config.max_memory_bytes;
    row.most_bytes.filter(|most| wished == 0 || *most < wished).unwrap_or(wished)
}

/// The weights in the order of the files, in parts of whole row tiles.
fn parts(file: &ModelFile, graph: &Graph) -> Result<VecDeque<Part>> {
    let mut parts = Vec::new();
    for (weight, spec) in graph.weights.iter().enumerate() {
        let tensor = file.require_tensor(&spec.name)?;
        let rows_at_once = (PART_BYTES / tensor.row_bytes().max(1) / 4).max(1) * 4;
        let mut first_row = 0;
        while first_row < tensor.rows() {
            let end = (first_row + rows_at_once).min(tensor.rows());
            let range = tensor.rows_range(first_row..end)?;
            parts.push(Part { weight, first_row, shard: tensor.shard, range });
            first_row = end;
        }
    }
    parts.sort_by_key(|part| (part.shard, part.range.start));
    Ok(parts.into())
}
