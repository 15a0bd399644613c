//! A small decoder that uses every operator, as the models emit it, for the tests of backends.

#![allow(clippy::unwrap_used)]

use super::{BACKENDS, Executable, KvType, LoadRequest, OpenOptions};
use crate::graph::{CacheSpec, Graph, GraphBuilder, ValueId};
use crate::ops::{Add, Attention, Embed, Linear, Mul, Pairs, RmsNorm, Rope, RopeScaling, RopeTable, Silu, TakeRows};
use crate::quant::{BlockFormat, PackedLayout, block_format_by_name};
use crate::quantize::Activations;
use futures::executor::block_on;
use std::sync::Arc;

pub const HIDDEN: usize = 64;
pub const VOCAB: usize = 37;
pub const CAPACITY: usize = 80;

fn linear(graph: &mut GraphBuilder, name: &str, x: ValueId, rows: usize, columns: usize) -> ValueId {
    let inputs = [x, graph.matrix(name, rows, columns), graph.vector(&format!("{name}.bias"), rows)];
    graph.op(name, Linear { bias: true, ..Linear::PLAIN }, &inputs).unwrap()
}

fn norm(graph: &mut GraphBuilder, name: &str, x: ValueId, len: usize) -> ValueId {
    let weight = graph.vector(name, len);
    graph.op(name, RmsNorm { eps: 1e-5 }, &[x, weight]).unwrap()
}

/// One layer of a decoder with head norms, biases and a window, and its head.
pub fn decoder(pairs: Pairs, window: Option<usize>) -> Graph {
    let mut graph = GraphBuilder::default();
    let tokens = graph.tokens();
    let table = graph.matrix("embd", VOCAB, HIDDEN);
    let turns = RopeTable { base: 1e4, rotary_dim: 16, scaling: RopeScaling::None, factors: None };
    let turns = graph.constant("rope", turns.build(CAPACITY).unwrap());
    let x = graph.op("embd", Embed, &[tokens, table]).unwrap();
    let h = norm(&mut graph, "norm", x, HIDDEN);
    let mut heads = Vec::new();
    for (name, rows) in [("q", 96), ("k", 32), ("v", 32)] {
        let mut head = linear(&mut graph, name, h, rows, HIDDEN);
        if name != "v" {
            head = norm(&mut graph, &format!("{name}_norm"), head, 16);
            head = graph.op("rope", Rope { head_dim: 16, pairs }, &[head, turns]).unwrap();
        }
        heads.push(head);
    }
    let cache = graph.cache(CacheSpec { n_kv_heads: 2, head_dim: 16 });
    let attention =
        Attention { cache, n_heads: 6, n_kv_heads: 2, head_dim: 16, scale: 0.25, window, norm: None, rotary: None };
    let a = graph.op("attn", attention, &heads).unwrap();
    let o = linear(&mut graph, "o", a, HIDDEN, 96);
    let x = graph.op("residual", Add, &[x, o]).unwrap();
    let h = norm(&mut graph, "ffn_norm", x, HIDDEN);
    let (gate, up) = (linear(&mut graph, "gate", h, 96, HIDDEN), linear(&mut graph, "up", h, 96, HIDDEN));
    let gate = graph.op("silu", Silu, &[gate]).unwrap();
    let m = graph.op("mul", Mul, &[gate, up]).unwrap();
    let d = linear(&mut graph, "down", m, HIDDEN, 96);
    let x = graph.op("residual2", Add, &[d, x]).unwrap();
    let rows = graph.op("rows", TakeRows, &[x]).unwrap();
    let logits = graph.op("head", Linear::PLAIN, &[rows, table]).unwrap();
    graph.finish(&[logits])
}

/// The bytes of a weight in a format: arbitrary codes, moderate scales.
fn bytes_of(name: &str, format: &BlockFormat, len: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let unit = |bits: u32| bits as f32 / (1 << 24) as f32 - 0.4;
    match format.name {
        "f32" => (0..len).flat_map(|_| unit(next()).to_le_bytes()).collect(),
        "f16" => (0..len).flat_map(|_| half::f16::from_f32(0.3 * unit(next())).to_le_bytes()).collect(),
        _ => {
            // A block that begins with an f16 scale.
            let block = |next: &mut dyn FnMut() -> u32| {
                let mut block: Vec<u8> = (0..format.block_bytes).map(|_| next() as u8).collect();
                block[..2].copy_from_slice(&half::f16::from_f32(0.01 + 0.01 * unit(next()).abs()).to_le_bytes());
                block
            };
            (0..len / format.block_len).flat_map(|_| block(&mut next)).collect()
        }
    }
}

/// A decoder with the format of its matrices and the element type of its cache.
pub struct Case {
    pub graph: Graph,
    pub format: &'static str,
    pub kv_type: KvType,
}

impl Case {
    /// What a backend is asked for.
    pub fn request(&self) -> LoadRequest {
        let layout = block_format_by_name(self.format).unwrap().layout;
        let layouts = self.graph.weights.iter().map(|weight| if weight.vector { PackedLayout::F32 } else { layout });
        LoadRequest {
            layouts: layouts.collect(),
            graph: Arc::new(self.graph.clone()),
            capacity: CAPACITY,
            kv_type: self.kv_type,
            activations: Activations::Blocks,
        }
    }

    /// Gives a model its weights and makes it ready.
    pub fn fill(&self, model: &mut dyn Executable) {
        let (f32_format, format) = (block_format_by_name("f32").unwrap(), block_format_by_name(self.format).unwrap());
        for (index, weight) in self.graph.weights.iter().enumerate() {
            let format = if weight.vector { f32_format } else { format };
            let bytes = bytes_of(&weight.name, format, weight.rows * weight.columns);
            // In two parts, where there are rows enough.
            let first = if weight.rows > 8 { 8 } else { 0 };
            let cut = first * weight.columns / format.block_len * format.block_bytes;
            if first > 0 {
                model.write_weight(index, 0, format, &bytes[..cut]).unwrap();
            }
            model.write_weight(index, first, format, &bytes[cut..]).unwrap();
        }
        block_on(model.finish()).unwrap();
    }
}

/// A loaded decoder.
pub fn load(backend: &str, case: &Case, threads: usize) -> Box<dyn Executable> {
    let row = BACKENDS.iter().find(|row| row.name == backend).unwrap();
    let options = OpenOptions { threads: Some(threads), allow_fallback_adapter: true, ..OpenOptions::default() };
    let mut model = block_on((row.open)(options, case.request())).unwrap();
    case.fill(&mut *model);
    model
}

/// A prompt of the decoder's tokens.
pub fn prompt() -> Vec<u32> {
    (0..70).map(|i| (i * 7 + i / 5) % VOCAB as u32).collect()
}

/// Logits of a prompt in two parts, then of a token.
pub fn logits(model: &mut dyn Executable) -> Vec<f32> {
    let prompt = prompt();
    block_on(model.forward(&prompt[..33], 0)).unwrap();
    let mut logits = block_on(model.logits()).unwrap();
    logits.extend(block_on(model.score(&prompt[33..], 33)).unwrap());
    block_on(model.forward(&[3], 70)).unwrap();
    logits.extend(block_on(model.logits()).unwrap());
    logits
}

/// The error relative to the energy of what was expected.
pub fn nmse(expected: &[f32], found: &[f32]) -> f64 {
    assert_eq!(expected.len(), found.len());
    let error: f64 = expected.iter().zip(found).map(|(e, f)| (f64::from(*e) - f64::from(*f)).powi(2)).sum();
    error / expected.iter().map(|e| f64::from(*e).powi(2)).sum::<f64>()
}
