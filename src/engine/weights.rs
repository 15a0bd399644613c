//! How the weights of a model will be held: what the user named, or what the memory allows. Knows no device.

use super::capacity::{Budget, fit};
use super::config::{EdgeConfig, Quantization};
use crate::error::{Error, ErrorKind, Result};
use crate::format::ModelFile;
use crate::graph::Graph;
use crate::models;
use crate::quant::PackedLayout;
use crate::quantize::{self, SCHEMES, Scheme, Share};

/// How the weights are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldWeights {
    /// `none`, or the name of the scheme by which weights were quantized anew.
    pub quantization: &'static str,
    /// Why.
    pub reason: String,
    /// The matrices by layout; the largest share first.
    pub matrices: Vec<Share>,
    /// Bytes of all weights.
    pub bytes: u64,
}

/// What was chosen for a model before its graph is made.
#[derive(Debug, Clone)]
pub struct Choice {
    /// How weights are quantized anew; `None` keeps them.
    pub scheme: Option<&'static Scheme>,
    /// Tokens that the key/value caches will hold.
    pub capacity: usize,
    reason: &'static str,
}

impl Choice {
    /// Chooses for a backend with room for `memory` bytes of weights and caches; 0 is no limit.
    ///
    /// # Errors
    /// `OutOfMemory`, with the bytes that are needed, where nothing that may be chosen fits.
    pub fn new(file: &ModelFile, early: &[(String, Vec<f32>)], config: &EdgeConfig, memory: u64) -> Result<Self> {
        let graph = models::build(file, early, 1)?;
        let stored = stored(file, &graph)?;
        let budget = Budget { context: config.max_context_tokens, memory };
        let with = |scheme: Option<&'static Scheme>, reason| -> Result<Self> {
            let bytes = quantize::bytes(&graph, &quantize::layouts(scheme, &graph, &stored));
            let capacity = fit(file, bytes, &budget, config.kv_cache.kv_type())?;
            Ok(Self { scheme, capacity, reason })
        };
        match config.quantization {
            Quantization::None => with(None, "asked for"),
            Quantization::Auto => {
                let kept = with(None, "the file's own weights fit");
                let smaller = SCHEMES.iter().filter(|scheme| scheme.automatic);
                smaller.fold(kept, |found, scheme| match found {
                    // The last error names the least that is needed.
                    Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                        with(Some(scheme), "the file's own weights do not fit the memory")
                    }
                    found => found,
                })
            }
            named => {
                let scheme = quantize::scheme(named.name());
                let scheme = scheme.ok_or_else(|| Error::internal(format!("no scheme is named {}", named.name())))?;
                with(Some(scheme), "asked for")
            }
        }
    }

    /// The layouts of the weights of the model's graph.
    pub fn layouts(&self, file: &ModelFile, graph: &Graph) -> Result<Vec<PackedLayout>> {
        Ok(quantize::layouts(self.scheme, graph, &stored(file, graph)?))
    }

    /// What is held, for diagnostics.
    pub fn held(&self, file: &ModelFile, graph: &Graph, layouts: &[PackedLayout]) -> Result<HeldWeights> {
        let stored = stored(file, graph)?;
        let matrices = graph.weights.iter().zip(stored.iter().zip(layouts)).filter(|(weight, _)| !weight.vector);
        let (changed, kept): (Vec<_>, Vec<_>) = matrices.partition(|(_, (stored, held))| stored != held);
        let reason = match self.scheme {
            Some(scheme) if !kept.is_empty() => format!(
                "{}; {} of {} matrices are kept as the file stores them, since {} would not make them smaller",
                self.reason,
                kept.len(),
                kept.len() + changed.len(),
                scheme.name
            ),
            _ => self.reason.to_owned(),
        };
        Ok(HeldWeights {
            quantization: self.scheme.map_or("none", |scheme| scheme.name),
            reason,
            matrices: quantize::shares(graph, layouts),
            bytes: quantize::bytes(graph, layouts),
        })
    }
}

/// How each weight of a file would be held if memory had no limit: its name in the file, layout and bytes.
///
/// # Errors
/// The file is of no known architecture, or its weights do not fit it.
pub fn held_as(file: &ModelFile, quantization: Quantization) -> Result<Vec<(String, PackedLayout, u64)>> {
    let graph = models::build(file, &[], 1)?;
    let layouts = quantize::layouts(quantize::scheme(quantization.name()), &graph, &stored(file, &graph)?);
    let weights = graph.weights.iter().zip(layouts);
    Ok(weights.map(|(weight, layout)| (weight.name.clone(), layout, quantize::bytes_of(weight, layout))).collect())
}

/// How the file's weights are held when nothing is quantized anew: vectors as f32, matrices in the layout of their
/// format.
fn stored(file: &ModelFile, graph: &Graph) -> Result<Vec<PackedLayout>> {
    let layout = |weight: &crate::graph::Weight| {
        let format = file.require_tensor(&weight.name)?.format;
        Ok(if weight.vector { PackedLayout::F32 } else { format.layout })
    };
    graph.weights.iter().map(layout).collect()
}
