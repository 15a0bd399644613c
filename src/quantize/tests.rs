//! Which weights a scheme takes and to what.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::graph::GraphBuilder;
use crate::ops::Linear;

fn coded(codes: Codes, group: usize, affine: bool) -> PackedLayout {
    PackedLayout::Coded { codes, group, affine }
}

/// A table of 96 columns, a matrix, a bias, and a head of its own.
fn graph(columns: usize) -> Graph {
    let mut graph = GraphBuilder::default();
    let tokens = graph.tokens();
    let table = graph.matrix("table", 40, columns);
    let x = graph.op("embed", Embed, &[tokens, table]).unwrap();
    let inputs = [x, graph.matrix("up", 24, columns), graph.vector("bias", 24)];
    let h = graph.op("up", Linear { bias: true, ..Linear::PLAIN }, &inputs).unwrap();
    let inputs = [h, graph.matrix("head", 40, 24)];
    let logits = graph.op("head", Linear::PLAIN, &inputs).unwrap();
    graph.finish(&[logits])
}

#[test]
fn the_largest_group_that_divides_the_columns_is_taken_and_64_before_it() {
    let scheme = scheme("afq-4").unwrap();
    for (columns, group) in [(64, Some(64)), (576, Some(64)), (128, Some(64)), (96, Some(32)), (100, None), (16, None)]
    {
        let layout = scheme.layout(Codes::B4, columns);
        assert_eq!(layout, group.map(|group| coded(Codes::B4, group, true)), "{columns}");
    }
}

#[test]
fn matrices_shrink_vectors_and_odd_columns_stay() {
    let graph = graph(128);
    let stored = [PackedLayout::F16, PackedLayout::F16, PackedLayout::F32, PackedLayout::F16];
    let found = layouts(scheme("afq-3"), &graph, &stored);
    // The head's 24 columns are no whole group.
    let expected = [coded(Codes::B6, 64, true), coded(Codes::B3, 64, true), PackedLayout::F32, PackedLayout::F16];
    assert_eq!(found, expected);
    assert_eq!(layouts(scheme("int8"), &graph, &stored)[1], coded(Codes::B8, 128, false));
    assert_eq!(layouts(None, &graph, &stored), stored);
    let shares = shares(&graph, &found);
    assert_eq!(shares.iter().map(|share| share.matrices).sum::<usize>(), 3);
    let vectors = 4 * 24;
    assert_eq!(shares.iter().map(|share| share.bytes).sum::<u64>() + vectors, bytes(&graph, &found));
}

#[test]
fn no_weight_gets_larger() {
    let graph = graph(128);
    let q4_0 = coded(Codes::B4, 32, false);
    let stored = [q4_0, q4_0, PackedLayout::F32, PackedLayout::F16];
    for scheme in SCHEMES {
        let found = layouts(Some(scheme), &graph, &stored);
        assert!(bytes(&graph, &found) <= bytes(&graph, &stored), "{}", scheme.name);
        // 4 bits with a scale and a bias for 64 columns take what 4 bits with a scale for 32 take.
        let shrinks = matches!(scheme.name, "afq-2" | "afq-3");
        assert_eq!(found[1] != q4_0, shrinks, "{}", scheme.name);
        assert_eq!(found[0], q4_0, "{}: 6 bits for the table would be more", scheme.name);
    }
}

#[test]
fn automatic_schemes_come_from_the_largest_to_the_smallest() {
    let graph = graph(128);
    let stored = vec![PackedLayout::F32; 4];
    let automatic = SCHEMES.iter().filter(|scheme| scheme.automatic);
    let sizes: Vec<u64> = automatic.map(|scheme| bytes(&graph, &layouts(Some(scheme), &graph, &stored))).collect();
    assert_eq!(sizes.len(), 5);
    assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]), "{sizes:?}");
}
