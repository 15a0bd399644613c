// The second half of a workgroup's rows are those of another matrix, TILES tiles later: silu(first) * second.
fn weight_tile(block: u32, slot: u32) -> u32 {
    let tile = min(block * (HALF / 4u) + slot % (HALF / 4u), TILES - 1u);
    return TILE_0 + slot / (HALF / 4u) * TILES + tile;
}

// The products of a token with row `row` of each half.
fn put(token: u32, block: u32, row: u32, first: f32, second: f32) {
    let tile = (block * HALF + row) / 4u;
    let r = row % 4u;
    if (token < TOKENS && tile < TILES) {
        store(token, tile, r, silu(first + bias_of(tile, r)) * (second + bias_of(tile + TILES, r)));
    }
}
