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

fn turned(i: u32, own: f32, other: f32, position: u32) -> f32 {
    if (i >= 2u * PAIRS) {
        return own;
    }
    let pair = select(i % max(PAIRS, 1u), i / 2u, INTERLEAVED);
    let first = select(i < PAIRS, (i & 1u) == 0u, INTERLEAVED);
    let turn = turn_of(position, pair);
    return select(own * turn.x + other * turn.y, own * turn.x - other * turn.y, first);
}
