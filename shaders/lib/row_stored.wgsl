// A product that is whole.
fn put_row(token: u32, row: u32, sum: f32) {
    let tile = row / 4u;
    if (token < TOKENS && tile < TILES) {
        store(token, tile, row % 4u, sum + bias_of(tile, row % 4u));
    }
}
