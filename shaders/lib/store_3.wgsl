// Writes row `r` of a tile for a token; tiles before END_0 belong to the first matrix, before END_1 to the second.
fn store(token: u32, tile: u32, r: u32, value: f32) {
    if (tile < END_0) {
        let row = tile * 4u + r;
        if (row < ROWS_0) {
            dst_0[token * ROWS_0 + row] = value;
        }
    } else if (tile < END_1) {
        let row = (tile - END_0) * 4u + r;
        if (row < ROWS_1) {
            dst_1[token * ROWS_1 + row] = value;
        }
    } else {
        let row = (tile - END_1) * 4u + r;
        if (row < ROWS_2) {
            dst_2[token * ROWS_2 + row] = value;
        }
    }
}
