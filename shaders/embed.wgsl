// Rows of a table by token id. An invocation decodes 8 columns of one token.
// A launch covers the COUNT rows of the table from FIRST: those of one buffer.
fn put(token: u32, column: u32, value: f32) {
    if (column < WIDTH) {
        dst[token * WIDTH + column] = value;
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = (wg.x + wg.y * GRID_X) * WG + local;
    let token = i / K8;
    let k8 = i % K8;
    if (token >= TOKENS) {
        return;
    }
    let id = min(tokens[token], VOCABULARY - 1u);
    if (id < FIRST || id >= FIRST + COUNT) {
        return;
    }
    let row = id - FIRST;
    let block = w_block(w_load(TILE_0 + row / 4u, k8));
    let r = row % 4u;
    let column = k8 * 8u;
    put(token, column, block.lo[0][r]);
    put(token, column + 1u, block.lo[1][r]);
    put(token, column + 2u, block.lo[2][r]);
    put(token, column + 3u, block.lo[3][r]);
    put(token, column + 4u, block.hi[0][r]);
    put(token, column + 5u, block.hi[1][r]);
    put(token, column + 6u, block.hi[2][r]);
    put(token, column + 7u, block.hi[3][r]);
}
