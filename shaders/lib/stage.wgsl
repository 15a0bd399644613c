// Blocks of 8 * STEP columns in workgroup memory: rows of quads (four columns each), STRIDE quads apart, so that
// neighbouring rows begin in different banks. A block has BM * STEP * 2 quads of activations and HALF / 2 * STEP steps
// of weights.
var<workgroup> activations: array<Quad, BM * STRIDE>;
// Both halves of the workgroup's rows.
var<workgroup> tiles: array<Quad, 2 * HALF * STRIDE>;

fn x_quad(first_token: u32, k0: u32, i: u32) -> vec4<f32> {
    let token = min(first_token + i / (STEP * 2u), TOKENS - 1u);
    return x4(token, k0 * 2u + i % (STEP * 2u));
}

fn stage_quad(i: u32, value: vec4<f32>) {
    activations[i / (STEP * 2u) * STRIDE + i % (STEP * 2u)] = quad(value);
}

fn w_step(block: u32, k0: u32, i: u32) -> Weights8 {
    return w_load(weight_tile(block, i / STEP), k0 + i % STEP);
}

fn stage_row(at: u32, row: Row8) {
    tiles[at] = quad(row.a);
    tiles[at + 1u] = quad(row.b);
}

fn stage_step(i: u32, w: Weights8) {
    let at = i / STEP * 4u * STRIDE + i % STEP * 2u;
    stage_row(at, w_decoded(w, 0u));
    stage_row(at + STRIDE, w_decoded(w, 1u));
    stage_row(at + 2u * STRIDE, w_decoded(w, 2u));
    stage_row(at + 3u * STRIDE, w_decoded(w, 3u));
}
