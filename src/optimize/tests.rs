//! Every pass leaves the results of a decoder as they were.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::backend::{Executable, KvType, LoadRequest, OpenOptions, reference};
use crate::graph::{CacheSpec, GraphBuilder};
use crate::ops::*;
use crate::quant::{PackedLayout, block_format_by_name};
use crate::quantize::Activations;
use futures::executor::block_on;
use std::sync::Arc;

const HIDDEN: usize = 16;

/// A layer with head norms, biases, a gate and residuals, and a head.
pub(crate) fn decoder() -> Graph {
    let mut graph = GraphBuilder::default();
    let tokens = graph.tokens();
    let table = graph.matrix("embd", 11, HIDDEN);
    let rope = RopeTable { base: 1e4, rotary_dim: 8, scaling: RopeScaling::None, factors: None }.build(8).unwrap();
    let rope = graph.constant("rope", rope);
    let x = graph.op("embd", Embed, &[tokens, table]).unwrap();
    let norm = graph.vector("norm", HIDDEN);
    let h = graph.op("norm", RmsNorm { eps: 1e-5 }, &[x, norm]).unwrap();
    let project = |graph: &mut GraphBuilder, name: &str, x, rows, columns| {
        let inputs = [x, graph.matrix(name, rows, columns), graph.vector(&format!("{name}.bias"), rows)];
        graph.op(name, Linear { bias: true, ..Linear::PLAIN }, &inputs).unwrap()
    };
    let mut heads = Vec::new();
    for (name, rows) in [("q", HIDDEN), ("k", 8), ("v", 8)] {
        let mut head = project(&mut graph, name, h, rows, HIDDEN);
        if name != "v" {
            let norm = graph.vector(&format!("{name}_norm"), 8);
            head = graph.op("head_norm", RmsNorm { eps: 1e-6 }, &[head, norm]).unwrap();
            head = graph.op("rope", Rope { head_dim: 8, pairs: Pairs::Halves }, &[head, rope]).unwrap();
        }
        heads.push(head);
    }
    let cache = graph.cache(CacheSpec { n_kv_heads: 1, head_dim: 8 });
    let attention = Attention {
        cache,
        n_heads: 2,
        n_kv_heads: 1,
        head_dim: 8,
        scale: 0.35,
        window: None,
        norm: None,
        rotary: None,
    };
    let a = graph.op("attn", attention, &heads).unwrap();
    let o = project(&mut graph, "o", a, HIDDEN, HIDDEN);
    let x = graph.op("residual", Add, &[x, o]).unwrap();
    let norm = graph.vector("ffn_norm", HIDDEN);
    let h = graph.op("ffn_norm", RmsNorm { eps: 1e-5 }, &[x, norm]).unwrap();
    let (gate, up) = (project(&mut graph, "gate", h, 24, HIDDEN), project(&mut graph, "up", h, 24, HIDDEN));
    let gate = graph.op("silu", Silu, &[gate]).unwrap();
    let m = graph.op("mul", Mul, &[gate, up]).unwrap();
    let d = project(&mut graph, "down", m, HIDDEN, 24);
    let x = graph.op("residual2", Add, &[d, x]).unwrap();
    let rows = graph.op("rows", TakeRows, &[x]).unwrap();
    let logits = graph.op("head", Linear::PLAIN, &[rows, table]).unwrap();
    graph.finish(&[logits])
}

fn logits(graph: Graph) -> Vec<f32> {
    let f32_format = block_format_by_name("f32").unwrap();
    let layouts = vec![PackedLayout::F32; graph.weights.len()];
    let weights = graph.weights.clone();
    let request = LoadRequest {
        graph: Arc::new(graph),
        layouts,
        capacity: 8,
        kv_type: KvType::F32,
        activations: Activations::Blocks,
    };
    let mut model: Box<dyn Executable> = block_on(reference::open(OpenOptions::default(), request)).unwrap();
    for (index, weight) in weights.iter().enumerate() {
        let mut state =
            weight.name.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
        let values = (0..weight.rows * weight.columns).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.4
        });
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        model.write_weight(index, 0, f32_format, &bytes).unwrap();
    }
    block_on(model.finish()).unwrap();
    block_on(model.forward(&[1, 5, 9], 0)).unwrap();
    block_on(model.score(&[2, 10, 0], 3)).unwrap()
}

#[test]
fn every_pass_applies_to_a_decoder_and_keeps_its_logits() {
    let expected = logits(decoder());
    let mut graph = decoder();
    for pass in PASSES {
        assert!((pass.run)(&mut graph).unwrap() > 0, "{} did not apply", pass.name);
        for (found, expected) in logits(graph.clone()).iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-4, "{}: {found} is not {expected}", pass.name);
        }
    }
    let names: Vec<&str> = graph.nodes.iter().map(|node| node.op.name()).collect();
    assert_eq!(names, ["embed", "linear", "attention", "linear", "linear", "linear", "take_rows", "linear"]);
}

#[test]
fn a_value_that_others_read_is_not_fused_away() {
    let mut graph = decoder();
    let norm = graph.nodes.iter().position(|node| node.name == "norm").unwrap();
    let read_elsewhere = graph.nodes[norm].outputs[0];
    graph.outputs.push(read_elsewhere);
    optimize(&mut graph).unwrap();
    assert!(graph.nodes.iter().any(|node| node.name == "norm"));
}
