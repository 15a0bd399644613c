//! Parts of an attention: what some of the keys give a few rows, and how parts add up to results. Knows no query and no key.
//!
//! A part holds each row's values weighted by `exp(score - largest)`, then each row's largest score, then each row's sum of
//! weights.

#![allow(unsafe_code)]

use super::elementwise::exp;

/// Rows of a part.
pub(super) const ROWS: usize = 4;

/// Numbers of a part whose rows have `head_dim` values.
pub(super) const fn part_len(head_dim: usize) -> usize {
    ROWS * (head_dim + 2)
}

/// Adds to `whole` the part of later keys; one that has no keys for a row leaves the row as it is.
#[inline(always)]
pub(super) fn add_part(whole: &mut [f32], part: &[f32], head_dim: usize) {
    let (rows, state) = whole.split_at_mut(ROWS * head_dim);
    let (part_rows, part_state) = part.split_at(ROWS * head_dim);
    for (i, (row, part_row)) in rows.chunks_exact_mut(head_dim).zip(part_rows.chunks_exact(head_dim)).enumerate() {
        let (largest, part_largest) = (state[i], part_state[i]);
        // The sum of weights tells, since a largest score of minus infinity is also that of scores which are no numbers.
        if part_state[ROWS + i] == 0.0 {
            continue;
        }
        let new = if part_largest > largest { part_largest } else { largest };
        let factor = if largest == f32::NEG_INFINITY { 0.0 } else { exp(largest - new) };
        let part_factor = exp(part_largest - new);
        for (value, part_value) in row.iter_mut().zip(part_row) {
            *value = *value * factor + part_value * part_factor;
        }
        state[i] = new;
        state[ROWS + i] = state[ROWS + i] * factor + part_state[ROWS + i] * part_factor;
    }
}

/// The results of the rows of `whole`, each written where `starts` says; a row that saw no key gets zeros.
///
/// # Safety
/// `head_dim` values are writable at each of `starts` in `dst`, and nobody else touches them.
#[inline(always)]
pub(super) unsafe fn finish(whole: &[f32], starts: &[usize], head_dim: usize, dst: *mut f32) {
    let (rows, state) = whole.split_at(ROWS * head_dim);
    for ((row, total), &start) in rows.chunks_exact(head_dim).zip(&state[ROWS..]).zip(starts) {
        let inverse = if *total > 0.0 { 1.0 / total } else { 0.0 };
        // SAFETY: the caller's promise.
        let to = unsafe { std::slice::from_raw_parts_mut(dst.add(start), head_dim) };
        for (to, value) in to.iter_mut().zip(row) {
            *to = value * inverse;
        }
    }
}
