//! What every backend has to do alike, on a small decoder.

#![allow(clippy::unwrap_used)]

use super::samples::{Case, decoder, load};
use super::{BACKENDS, Executable, KvType};
use crate::ops::Pairs;
use crate::optimize::optimize;
use futures::executor::block_on;

/// Tokens that are not those of another `name`.
fn tokens(name: u32, len: u32) -> Vec<u32> {
    (0..len).map(|index| (index * 7 + index / 5 + name) % 37).collect()
}

/// Runs tokens from the first position on, in steps of 16 at most.
fn run(model: &mut dyn Executable, tokens: &[u32]) {
    for (index, chunk) in tokens.chunks(16).enumerate() {
        block_on(model.forward(chunk, index * 16)).unwrap();
    }
}

/// The logits after `last` at the position that follows the `held` tokens in the cache.
fn logits_after(model: &mut dyn Executable, last: u32, held: usize) -> Vec<f32> {
    block_on(model.forward(&[last], held)).unwrap();
    block_on(model.logits()).unwrap()
}

fn check_copies(backend: &str, window: Option<usize>, kv_type: KvType) {
    let mut graph = decoder(Pairs::Halves, window);
    optimize(&mut graph).unwrap();
    let mut model = load(backend, &Case { graph, format: "q8_0", kv_type }, 1);
    let (a, b) = (tokens(1, 50), tokens(2, 70));
    run(&mut *model, &a[..32]);
    let short = logits_after(&mut *model, 3, 32);
    run(&mut *model, &a);
    let before = model.memory().kv_bytes;
    block_on(model.save(4, a.len())).unwrap();
    assert_eq!(model.memory().kv_bytes - before, model.snapshot_bytes(a.len()), "{backend}");
    let long = logits_after(&mut *model, 3, a.len());

    run(&mut *model, &b);
    block_on(model.save(0, b.len())).unwrap();
    let other = logits_after(&mut *model, 3, b.len());
    assert_ne!(long, other);

    // Back and forth, over what the other left; a beginning of what was saved as well.
    block_on(model.restore(4, a.len())).unwrap();
    assert!(logits_after(&mut *model, 3, a.len()) == long, "{backend} {window:?} {kv_type:?}");
    block_on(model.restore(0, b.len())).unwrap();
    assert!(logits_after(&mut *model, 3, b.len()) == other, "{backend} {window:?} {kv_type:?}");
    block_on(model.restore(4, 32)).unwrap();
    assert!(logits_after(&mut *model, 3, 32) == short, "{backend} {window:?} {kv_type:?}");

    // A place is used again, and what was there is gone.
    block_on(model.save(4, 10)).unwrap();
    model.discard(0);
    assert_eq!(model.memory().kv_bytes - before, model.snapshot_bytes(10), "{backend}");
    assert_eq!(block_on(model.restore(0, 1)).unwrap_err().code(), "internal", "{backend}");
    model.discard(4);
    model.discard(99);
    assert_eq!(model.memory().kv_bytes, before, "{backend}");
}

#[test]
fn a_copy_of_the_cache_gives_the_logits_it_gave_on_every_backend() {
    for row in BACKENDS {
        for window in [None, Some(20)] {
            for kv_type in [KvType::F16, KvType::F32, KvType::Q8] {
                check_copies(row.name, window, kv_type);
            }
        }
    }
}

/// What guesses ahead rest on: the logits after each of several tokens are those after the tokens one by one.
#[test]
fn several_tokens_score_as_they_do_one_by_one() {
    for (format, tolerance) in [("q4_0", 0.0), ("q5_0", 0.0), ("q8_0", 0.0), ("f16", 1e-4), ("f32", 1e-4)] {
        let mut graph = decoder(Pairs::Halves, None);
        optimize(&mut graph).unwrap();
        let mut model = load("cpu", &Case { graph, format, kv_type: KvType::F16 }, 1);
        let (a, b) = (tokens(1, 40), tokens(2, 9));
        run(&mut *model, &a);
        let together = block_on(model.score(&b, a.len())).unwrap();
        run(&mut *model, &a);
        let alone: Vec<f32> =
            (0..).zip(&b).flat_map(|(index, &token)| logits_after(&mut *model, token, a.len() + index)).collect();
        assert_eq!(together.len(), alone.len());
        let difference = together.iter().zip(&alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference <= tolerance, "{format}: {difference:e}");
    }
}
