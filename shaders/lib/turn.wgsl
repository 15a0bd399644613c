// Element i of a head after the rotary embedding, from its own and its partner's value before it.
fn partner(i: u32) -> u32 {
    if (i >= 2u * PAIRS) {
        return i;
    }
    if (INTERLEAVED) {
        return i ^ 1u;
    }
    return select(i - PAIRS, i + PAIRS, i < PAIRS);
}

// The pair that element i belongs to; any pair where it belongs to none.
fn pair_of(i: u32) -> u32 {
    let last = max(PAIRS, 1u) - 1u;
    return select(i % (last + 1u), min(i / 2u, last), INTERLEAVED);
}

fn turned_by(i: u32, own: f32, other: f32, turn: vec2<f32>) -> f32 {
    if (i >= 2u * PAIRS) {
        return own;
    }
    let first = select(i < PAIRS, (i & 1u) == 0u, INTERLEAVED);
    return select(own * turn.x + other * turn.y, own * turn.x - other * turn.y, first);
}

fn turned(i: u32, own: f32, other: f32, position: u32) -> f32 {
    return turned_by(i, own, other, turn_of(position, pair_of(i)));
}
