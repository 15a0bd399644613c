// Writes row `r` of a tile for a token. ROWS_0 rows are written from column FIRST_0 of rows of WIDTH_0.
fn store(token: u32, tile: u32, r: u32, value: f32) {
    let row = tile * 4u + r;
    if (row < ROWS_0) {
        let at = token * WIDTH_0 + FIRST_0 + row;
        dst_0[at] = value + residual_of(at);
    }
}
