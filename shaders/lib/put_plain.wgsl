// The halves of a workgroup's rows are neighbours.
fn weight_tile(block: u32, slot: u32) -> u32 {
    return TILE_0 + min(block * (HALF / 2u) + slot, TILES - 1u);
}

// The products of a token with row `row` of each half.
fn put(token: u32, block: u32, row: u32, first: f32, second: f32) {
    put_row(token, block * 2u * HALF + row, first);
    put_row(token, block * 2u * HALF + HALF + row, second);
}
