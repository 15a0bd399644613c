//! The oracle: runs every operation's reference over dense f32 weights. Slow and obviously right;
//! calls no optimized code.

use super::{BackendReport, BoxFuture, Executable, LoadRequest, Machine, MemoryUse, OpenOptions};
use crate::error::{Context, Error, Result};
use crate::graph::{Dims, Graph, Origin, ReferenceCache, ReferenceCx, ValueId};
use crate::quant::{BlockFormat, PackedLayout, pack_rows_as, unpack_rows};
use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model as dense tensors.
pub struct Reference {
    graph: Arc<Graph>,
    layouts: Vec<PackedLayout>,
    parts: Vec<Vec<f32>>,
    weights: Vec<Arc<Tensor>>,
    caches: Vec<ReferenceCache>,
    /// Copies of all caches, whole, by place.
    snapshots: BTreeMap<usize, Vec<ReferenceCache>>,
    capacity: usize,
    logits: Vec<f32>,
}

/// Opens the reference backend.
pub fn open(_options: OpenOptions, request: LoadRequest) -> BoxFuture<'static, Result<Box<dyn Executable>>> {
    Box::pin(async move { Ok(Box::new(Reference::new(request)) as Box<dyn Executable>) })
}

/// What a model takes as dense tensors; its activations come and go.
pub fn estimate(_machine: &Machine, request: &LoadRequest) -> Result<MemoryUse> {
    let floats = |sizes: &[usize]| sizes.iter().fold(4u64, |bytes, size| bytes.saturating_mul(*size as u64));
    let weights = request.graph.weights.iter().map(|weight| floats(&[weight.rows, weight.columns]));
    let caches = request.graph.caches.iter();
    let caches = caches.map(|spec| floats(&[2, spec.n_kv_heads, request.capacity, spec.head_dim]));
    Ok(MemoryUse { weights_bytes: weights.sum(), kv_bytes: caches.sum(), ..MemoryUse::default() })
}

fn cache_bytes(cache: &ReferenceCache) -> u64 {
    (cache.keys.len() + cache.values.len()) as u64 * 4
}

impl Reference {
    fn new(request: LoadRequest) -> Self {
        let cache = |spec: &crate::graph::CacheSpec| {
            let len = spec.n_kv_heads * request.capacity * spec.head_dim;
            ReferenceCache {
                capacity: request.capacity,
                kv_type: request.kv_type,
                keys: vec![0.0; len],
                values: vec![0.0; len],
            }
        };
        Self {
            caches: request.graph.caches.iter().map(cache).collect(),
            parts: vec![Vec::new(); request.graph.weights.len()],
            weights: Vec::new(),
            snapshots: BTreeMap::new(),
            layouts: request.layouts,
            graph: request.graph,
            capacity: request.capacity,
            logits: Vec::new(),
        }
    }

    /// Logits of the last `rows` tokens.
    fn logits_of(&mut self, tokens: &[u32], position: usize, rows: usize) -> Result<Vec<f32>> {
        let graph = Arc::clone(&self.graph);
        self.run(&graph, tokens, position, rows)
    }

    fn hidden_of(&mut self, tokens: &[u32], position: usize) -> Result<Vec<f32>> {
        let graph = Arc::clone(self.graph.hidden()?);
        self.run(&graph, tokens, position, tokens.len())
    }

    /// The first output of `graph` for the last `rows` tokens.
    fn run(&mut self, graph: &Graph, tokens: &[u32], position: usize, rows: usize) -> Result<Vec<f32>> {
        if tokens.is_empty() || position + tokens.len() > self.capacity {
            let end = position + tokens.len();
            return Err(Error::context_overflow(format!("expected 1 to {} tokens, found {end}", self.capacity)));
        }
        let dims = Dims { tokens: tokens.len(), rows };
        let tokens = Arc::new(Tensor::u32([dims.tokens], tokens.to_vec())?);
        let mut values: Vec<Option<Arc<Tensor>>> = graph
            .values
            .iter()
            .map(|value| match value.origin {
                Origin::Tokens => Some(Arc::clone(&tokens)),
                Origin::Weight(index) => self.weights.get(index).cloned(),
                Origin::Constant(index) => graph.constants.get(index).cloned(),
                Origin::Node => None,
            })
            .collect();
        let missing = |id: &ValueId| Error::internal(format!("value {} is not there", graph.values[id.0].name));
        for node in &graph.nodes {
            let inputs = node.inputs.iter().map(|id| values[id.0].clone().ok_or_else(|| missing(id)));
            let inputs = inputs.collect::<Result<Vec<_>>>()?;
            let inputs: Vec<&Tensor> = inputs.iter().map(AsRef::as_ref).collect();
            let mut cx = ReferenceCx { position, rows, caches: &mut self.caches };
            let outputs = node.op.reference(&mut cx, &inputs).at(|| node.name.clone())?;
            for (id, output) in node.outputs.iter().zip(outputs) {
                let expected = graph.fact(*id).resolve(dims);
                if output.shape() != expected {
                    return Err(Error::internal(format!("expected shape {expected:?}, found {:?}", output.shape())));
                }
                values[id.0] = Some(Arc::new(output));
            }
        }
        let output = graph.outputs.first().ok_or_else(|| Error::internal("the graph has no output"))?;
        let output = values[output.0].take().ok_or_else(|| missing(output))?;
        Ok(output.as_f32()?.to_vec())
    }
}

impl Executable for Reference {
    fn write_weight(
        &mut self,
        weight: usize,
        first_row: usize,
        format: &'static BlockFormat,
        bytes: &[u8],
    ) -> Result<()> {
        let (part, spec) = (&mut self.parts[weight], &self.graph.weights[weight]);
        if part.len() != first_row * spec.columns || !bytes.len().is_multiple_of(format.block_bytes) {
            return Err(Error::internal("a weight's parts must be whole and in order").at(spec.name.clone()));
        }
        let len = part.len();
        part.resize(len + bytes.len() / format.block_bytes * format.block_len, 0.0);
        match self.layouts.get(weight) {
            // What is quantized anew is computed with as the other backends hold it.
            Some(&layout) if !spec.vector && layout != format.layout => {
                let rows = (part.len() - len) / spec.columns.max(1);
                unpack_rows(&pack_rows_as(layout, format, bytes, rows, spec.columns)?, &mut part[len..])
            }
            _ => {
                (format.dequantize)(bytes, &mut part[len..]);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<()>> {
        let parts = std::mem::take(&mut self.parts);
        let tensors = parts.into_iter().zip(&self.graph.weights).map(|(part, spec)| {
            let shape = if spec.vector { vec![spec.columns] } else { vec![spec.rows, spec.columns] };
            Tensor::f32(shape, part).map(Arc::new).at(|| spec.name.clone())
        });
        let weights = tensors.collect::<Result<Vec<_>>>();
        Box::pin(async move {
            self.weights = weights?;
            Ok(())
        })
    }

    fn max_tokens(&self) -> usize {
        512
    }

    fn forward(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<()>> {
        let logits = self.logits_of(tokens, position, 1);
        Box::pin(async move {
            self.logits = logits?;
            Ok(())
        })
    }

    fn logits(&mut self) -> BoxFuture<'_, Result<Vec<f32>>> {
        Box::pin(async { Ok(self.logits.clone()) })
    }

    fn score(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>> {
        let logits = self.logits_of(tokens, position, tokens.len());
        Box::pin(async { logits })
    }

    fn hidden(&mut self, tokens: &[u32], position: usize) -> BoxFuture<'_, Result<Vec<f32>>> {
        let hidden = self.hidden_of(tokens, position);
        Box::pin(async { hidden })
    }

    fn snapshot_bytes(&self, _tokens: usize) -> u64 {
        self.caches.iter().map(cache_bytes).sum()
    }

    fn save(&mut self, place: usize, _tokens: usize) -> BoxFuture<'_, Result<()>> {
        self.snapshots.insert(place, self.caches.clone());
        Box::pin(async { Ok(()) })
    }

    fn restore(&mut self, place: usize, _tokens: usize) -> BoxFuture<'_, Result<()>> {
        let saved = self.snapshots.get(&place).map(|saved| self.caches.clone_from(saved));
        Box::pin(async move { saved.ok_or_else(|| Error::internal(format!("nothing was saved at {place}"))) })
    }

    fn discard(&mut self, place: usize) {
        self.snapshots.remove(&place);
    }

    fn memory(&self) -> MemoryUse {
        let f32_bytes = |len: usize| len as u64 * 4;
        MemoryUse {
            weights_bytes: self
                .weights
                .iter()
                .filter_map(|weight| weight.as_f32().ok())
                .map(|w| f32_bytes(w.len()))
                .sum(),
            kv_bytes: self.caches.iter().chain(self.snapshots.values().flatten()).map(cache_bytes).sum(),
            ..MemoryUse::default()
        }
    }

    fn report(&self) -> BackendReport {
        BackendReport { device: "plain loops, f64 sums".to_owned(), threads: 1, ..BackendReport::default() }
    }
}
