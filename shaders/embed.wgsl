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
    let decoded = w_decoded(w_load(TILE_0 + row / 4u, k8), row % 4u);
    let column = k8 * 8u;
    put(token, column, decoded.a.x);
    put(token, column + 1u, decoded.a.y);
    put(token, column + 2u, decoded.a.z);
    put(token, column + 3u, decoded.a.w);
    put(token, column + 4u, decoded.b.x);
    put(token, column + 5u, decoded.b.y);
    put(token, column + 6u, decoded.b.z);
    put(token, column + 7u, decoded.b.w);
}
