//! The draw of a token from a short list of candidates: the one rule that every device and the host follow.
//! Knows nothing of penalties, vocabularies or text.

use super::{DEVICE_TOP_K, DeviceSampling, uniform};

/// Logits that are looked at together: most blocks hold none of the highest.
const BLOCK: usize = 64;
/// How many of a block's logits are compared at once.
const LANES: usize = 16;

/// The index drawn from `logits`, which are sorted from the highest down; 0 for an empty list.
///
/// With `p[i] = exp(logits[i] - logits[0])`, summed in order: the shortest prefix whose share of the total reaches
/// `top_p` stays (at least one), of it those with `p[i] >= min_p`; among these the index is the first whose running
/// sum of `exp((logits[i] - logits[0]) / temperature)` exceeds `uniform` times their sum.
#[must_use]
pub fn draw(logits: &[f32], sampling: &DeviceSampling, uniform: f32) -> usize {
    let Some(&best) = logits.first() else { return 0 };
    if sampling.temperature <= 0.0 {
        return 0;
    }
    let kept = n_kept(logits, best, sampling);
    let weight = |logit: f32| ((logit - best) / sampling.temperature).exp();
    let total: f32 = logits.iter().take(kept).map(|&logit| weight(logit)).sum();
    let mut sum = 0.0;
    for (index, &logit) in logits.iter().take(kept).enumerate() {
        sum += weight(logit);
        if sum > uniform * total {
            return index;
        }
    }
    kept.saturating_sub(1)
}

/// How many of the first `logits` pass `top_p` and `min_p`.
fn n_kept(logits: &[f32], best: f32, sampling: &DeviceSampling) -> usize {
    let total: f32 = logits.iter().map(|&logit| (logit - best).exp()).sum();
    let enough = sampling.top_p * total;
    let mut sum = 0.0;
    let mut kept = 0;
    for &logit in logits {
        let p = (logit - best).exp();
        let is_enough = sampling.top_p < 1.0 && sum >= enough;
        if kept > 0 && (is_enough || p < sampling.min_p) {
            break;
        }
        sum += p;
        kept += 1;
    }
    kept
}

/// The token that a device draws from a whole vocabulary; `step` counts from the call's first token.
/// `None` when no logit is a number above minus infinity.
#[must_use]
pub fn draw_from_vocabulary(logits: &[f32], sampling: &DeviceSampling, step: u32) -> Option<u32> {
    let top_k = if sampling.temperature <= 0.0 { 1 } else { sampling.top_k.clamp(1, DEVICE_TOP_K) };
    let best = top(logits, top_k as usize);
    let sorted: Vec<f32> = best.iter().map(|&(_, logit)| logit).collect();
    let index = draw(&sorted, sampling, uniform(sampling.seed, sampling.counter.wrapping_add(step)));
    best.get(index).map(|&(id, _)| id)
}

/// The `count` highest logits with their ids, from the highest down, the lower id first among equals.
/// What is no number, or minus infinity, is left out; plus infinity counts as the largest number.
#[must_use]
pub fn top(logits: &[f32], count: usize) -> Vec<(u32, f32)> {
    let mut best: Vec<(u32, f32)> = Vec::with_capacity(count.min(logits.len()) + 1);
    // What a logit has to exceed to be among the best.
    let mut least = f32::NEG_INFINITY;
    for (first, block) in (0u32..).step_by(BLOCK).zip(logits.chunks(BLOCK)) {
        if !is_any_above(block, least) {
            continue;
        }
        for (id, &logit) in (first..).zip(block) {
            if logit > least {
                let logit = logit.min(f32::MAX);
                let place = best.partition_point(|&(_, held)| held >= logit);
                best.insert(place, (id, logit));
                best.truncate(count);
                if best.len() == count {
                    least = best.last().map_or(f32::INFINITY, |&(_, logit)| logit);
                }
            }
        }
    }
    best
}

/// Whether a value is greater than `least`. By lanes and without an early end, so that this compiles to SIMD.
fn is_any_above(values: &[f32], least: f32) -> bool {
    let mut lanes = [false; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for values in chunks {
        for (lane, &value) in lanes.iter_mut().zip(values) {
            *lane |= value > least;
        }
    }
    lanes.into_iter().any(|lane| lane) || rest.iter().any(|&value| value > least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLING: DeviceSampling =
        DeviceSampling { temperature: 1.0, top_k: 4, top_p: 1.0, min_p: 0.0, seed: 7, counter: 0 };

    #[test]
    fn equal_logits_are_drawn_equally_often() {
        let mut seen = [0usize; 4];
        for step in 0..4000 {
            seen[draw(&[1.0; 4], &SAMPLING, uniform(7, step))] += 1;
        }
        assert!(seen.iter().all(|&count| (900..1100).contains(&count)), "{seen:?}");
    }

    #[test]
    fn the_ends_of_the_draw_stay_inside() {
        assert_eq!(draw(&[2.0, 1.0], &SAMPLING, 0.0), 0);
        assert_eq!(draw(&[2.0, 1.0], &SAMPLING, 0.999_999_94), 1);
        assert_eq!(draw(&[], &SAMPLING, 0.5), 0);
    }

    #[test]
    fn top_p_keeps_the_token_that_reaches_the_share() {
        // Shares 1/2, 1/4, 1/4.
        let logits = [2.0f32.ln(), 0.0, 0.0];
        let kept = |top_p| n_kept(&logits, logits[0], &DeviceSampling { top_p, ..SAMPLING });
        assert_eq!([kept(0.0), kept(0.5), kept(0.51), kept(0.76), kept(1.0)], [1, 1, 2, 3, 3]);
    }

    #[test]
    fn min_p_is_a_share_of_the_best() {
        let logits = [0.0, 0.6f32.ln(), 0.4f32.ln()];
        let kept = |min_p| n_kept(&logits, 0.0, &DeviceSampling { min_p, ..SAMPLING });
        assert_eq!([kept(0.0), kept(0.5), kept(0.7), kept(1.0)], [3, 2, 1, 1]);
    }

    #[test]
    fn the_highest_of_many_are_those_of_a_sorted_list() {
        let mut logits: Vec<f32> = (0..200).map(|id| ((id * 37) % 53) as f32).collect();
        (logits[3], logits[70], logits[130], logits[199]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 52.5);
        let mut sorted: Vec<(u32, f32)> =
            (0u32..).zip(logits.clone()).filter(|(_, logit)| *logit > f32::NEG_INFINITY).collect();
        sorted.iter_mut().for_each(|(_, logit)| *logit = logit.min(f32::MAX));
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for count in [0, 1, 2, 70, 500] {
            assert_eq!(top(&logits, count), sorted[..count.min(sorted.len())], "{count}");
        }
    }

    #[test]
    fn the_highest_come_first_and_lower_ids_before_equals() {
        let logits = [1.0, f32::NAN, 3.0, 3.0, f32::NEG_INFINITY, f32::INFINITY, 2.0];
        assert_eq!(top(&logits, 3), [(5, f32::MAX), (2, 3.0), (3, 3.0)]);
        assert_eq!(top(&logits, 100).len(), 5);
        assert_eq!(draw_from_vocabulary(&[f32::NAN; 3], &SAMPLING, 0), None);
    }
}
