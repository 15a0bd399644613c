// A product over the columns of one split, for `matmul_merge`.
fn put_row(token: u32, row: u32, sum: f32) {
    if (token < TOKENS && row < TILES * 4u) {
        sums[(split * TOKENS + token) * (TILES * 4u) + row] = sum;
    }
}
