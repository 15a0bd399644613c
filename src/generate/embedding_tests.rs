//! Embeddings on the stub, whose states of a token are its id, its position and one.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::{Embedding, Pooling, VectorForm};
use crate::generate::TokenCache;
use crate::generate::stub::Stub;
use pollster::block_on;

const RAW: VectorForm = VectorForm { pooling: Pooling::Mean, dimensions: 3, normalize: false };

fn run(inputs: &[&[u32]], form: VectorForm) -> Vec<Vec<f32>> {
    let (mut stub, mut cache) = (Stub::saying(&[], 0), TokenCache::new());
    let mut embedding = Embedding::new(inputs.iter().map(|ids| ids.to_vec()).collect(), form);
    let mut vectors = Vec::new();
    while !embedding.is_over() {
        vectors.extend(block_on(embedding.next(&mut stub, &mut cache)).unwrap());
        assert!(cache.tokens().is_empty(), "nothing is kept");
    }
    assert_eq!(embedding.done_tokens(), embedding.total_tokens());
    assert_eq!(block_on(embedding.next(&mut stub, &mut cache)).unwrap(), None);
    vectors
}

#[test]
fn each_pooling_over_several_steps() {
    // Six tokens are two steps of the stub.
    let ids = [3, 1, 4, 1, 5, 9];
    let pooled = |pooling| run(&[&ids], VectorForm { pooling, ..RAW }).remove(0);
    let mean = 23.0 / 6.0;
    assert_eq!(pooled(Pooling::Mean), [mean, 2.5, 1.0]);
    assert_eq!(pooled(Pooling::Cls), [3.0, 0.0, 1.0]);
    assert_eq!(pooled(Pooling::Last), [9.0, 5.0, 1.0]);
    let all = pooled(Pooling::None);
    assert_eq!((all.len(), &all[6..9]), (18, [4.0, 2.0, 1.0].as_slice()));
}

#[test]
fn vectors_are_cut_and_then_scaled_to_length_one() {
    let form = VectorForm { dimensions: 2, normalize: true, ..RAW };
    assert_eq!(run(&[&[6, 0, 3, 9, 2]], form), [[4.0f32, 2.0].map(|value| value / 20f32.sqrt())]);
    let zeros = VectorForm { dimensions: 1, pooling: Pooling::Last, ..form };
    assert_eq!(run(&[&[0], &[7]], zeros), [[0.0], [1.0]]);
    let rows = run(&[&[3, 6]], VectorForm { pooling: Pooling::None, dimensions: 2, normalize: true });
    assert_eq!(rows[0][..2], [1.0, 0.0]);
    assert!((rows[0][2].powi(2) + rows[0][3].powi(2) - 1.0).abs() < 1e-6, "each token's for itself");
}

#[test]
fn who_takes_the_cache_in_the_middle_makes_the_sequence_run_again() {
    let (mut stub, mut cache) = (Stub::saying(&[], 0), TokenCache::new());
    let mut embedding = Embedding::new(vec![vec![1, 2, 3, 4, 5]], RAW);
    assert_eq!(block_on(embedding.next(&mut stub, &mut cache)).unwrap(), None);
    block_on(cache.claim(&mut stub, &[8, 8])).unwrap();
    assert_eq!(block_on(embedding.next(&mut stub, &mut cache)).unwrap(), None);
    assert_eq!(embedding.done_tokens(), 4);
    assert_eq!(block_on(embedding.next(&mut stub, &mut cache)).unwrap().unwrap(), [3.0, 2.0, 1.0]);
    assert_eq!(stub.calls, ["hidden 4@0", "hidden 4@0", "hidden 1@4"]);
}

#[test]
fn what_the_cache_held_is_copied_away_and_found_again() {
    let (mut stub, mut cache) = (Stub::saying(&[], 0), TokenCache::with_budget(100));
    let prompt: Vec<u32> = (0..12).collect();
    stub.held = prompt.clone();
    cache.extend(&prompt);
    let mut embedding = Embedding::new(vec![vec![1, 2], vec![3]], RAW);
    while !embedding.is_over() {
        block_on(embedding.next(&mut stub, &mut cache)).unwrap();
    }
    assert_eq!(block_on(cache.claim(&mut stub, &prompt)).unwrap().reused, 11);
    assert_eq!(stub.calls, ["save 12@0", "hidden 2@0", "hidden 1@0", "restore 11@0"]);
}

#[test]
fn a_failure_leaves_an_empty_cache() {
    let (mut stub, mut cache) = (Stub::saying(&[], 0), TokenCache::new());
    stub.fails_at = Some(2);
    let mut embedding = Embedding::new(vec![vec![1; 6]], RAW);
    let number = block_on(cache.claim(&mut stub, &[])).unwrap().number;
    block_on(embedding.next(&mut stub, &mut cache)).unwrap();
    let error = block_on(embedding.next(&mut stub, &mut cache)).unwrap_err();
    assert_eq!(error.code(), "device-lost");
    assert!(cache.tokens().is_empty() && !cache.is_claimed_by(number + 1));
}
