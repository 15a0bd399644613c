// The halves of a workgroup's rows are neighbours.
fn weight_tile(block: u32, slot: u32) -> u32 {
    return TILE_0 + min(block * (HALF / 2u) + slot, TILES - 1u);
}

fn put_row(token: u32, row: u32, sum: f32) {
    let tile = row / 4u;
    if (token < TOKENS && tile < TILES) {
        store(token, tile, row % 4u, sum + bias_of(tile, row % 4u));
    }
}

// The products of a token with row `row` of each half.
fn put(token: u32, block: u32, row: u32, first: f32, second: f32) {
    put_row(token, block * 2u * HALF + row, first);
    put_row(token, block * 2u * HALF + HALF + row, second);
}
