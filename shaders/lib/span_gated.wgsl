// A lane's tiles of the first matrix, then the same of the second, which lies TILES tiles after: silu(first) * second.
fn tile_of(first: u32, j: u32) -> u32 {
    return min(first + j % SPAN, TILES - 1u) + (j / SPAN) * TILES;
}

fn finish(first: u32, local: u32, lane: u32) {
    let scale = norm_scale(local);
    for (var i = lane; i < SPAN * 4u; i += LANES) {
        let tile = first + i / 4u;
        if (tile < TILES) {
            let r = i % 4u;
            let gate = reduced(local, i / 4u, r) * scale + bias_of(tile, r);
            let up = reduced(local, SPAN + i / 4u, r) * scale + bias_of(tile + TILES, r);
            store(0u, tile, r, silu(gate) * up);
        }
    }
}
