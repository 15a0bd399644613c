// Blocks of 8 * STEP columns in workgroup memory: rows of quads (four columns each), STRIDE quads apart, so that
// neighbouring rows begin in different banks.
var<workgroup> activations: array<Quad, BM * STRIDE>;
// Both halves of the workgroup's rows.
var<workgroup> tiles: array<Quad, 2 * HALF * STRIDE>;

fn stage_activations(first_token: u32, k0: u32, local: u32) {
    for (var i = local; i < BM * STEP * 2u; i += WG) {
        let k4 = i % (STEP * 2u);
        let token = i / (STEP * 2u);
        activations[token * STRIDE + k4] = quad(x4(min(first_token + token, TOKENS - 1u), k0 * 2u + k4));
    }
}

fn stage_weights(block: u32, k0: u32, local: u32) {
    for (var i = local; i < HALF / 2u * STEP; i += WG) {
        let step = i % STEP;
        let slot = i / STEP;
        let w = w_load(weight_tile(block, slot), k0 + step);
        let at = slot * 4u * STRIDE + step * 2u;
        stage_row(at, w_decoded(w, 0u));
        stage_row(at + STRIDE, w_decoded(w, 1u));
        stage_row(at + 2u * STRIDE, w_decoded(w, 2u));
        stage_row(at + 3u * STRIDE, w_decoded(w, 3u));
    }
}

fn stage_row(at: u32, row: Row8) {
    tiles[at] = quad(row.a);
    tiles[at + 1u] = quad(row.b);
}
