// Writes row `r` of a tile for a token; the tiles before END_0 belong to the first matrix.
fn store(token: u32, tile: u32, r: u32, value: f32) {
    if (tile < END_0) {
        let row = tile * 4u + r;
        if (row < ROWS_0) {
            dst_0[token * ROWS_0 + row] = value;
        }
    } else {
        let row = (tile - END_0) * 4u + r;
        if (row < ROWS_1) {
            dst_1[token * ROWS_1 + row] = value;
        }
    }
}
