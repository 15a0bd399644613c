// Matrix products with few tokens: LANES invocations share a tile of 4 rows and walk its columns, 8 a step each.
// Every invocation sees all its activations, so the norm's mean of squares comes by the way and scales the result.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let lane = local % LANES;
    let tile = (wg.x + wg.y * GRID_X) * (WG / LANES) + local / LANES;
    let clamped = TILE_0 + min(tile, TILES - 1u);
    var products: array<vec4<f32>, TOKENS>;
    var squares: array<f32, TOKENS>;
    for (var k8 = lane; k8 < K8; k8 += LANES) {
        let w = w_load(clamped, k8);
        let na = norm4(k8 * 2u);
        let nb = norm4(k8 * 2u + 1u);
        for (var t = 0u; t < TOKENS; t++) {
            let xa = x4(t, k8 * 2u);
            let xb = x4(t, k8 * 2u + 1u);
            if (NORM) {
                squares[t] += dot(xa, xa) + dot(xb, xb);
            }
            products[t] += w_dot(w, xa * na, xb * nb);
        }
    }
    for (var t = 0u; t < TOKENS; t++) {
        let sums = reduce(local, lane, products[t], squares[t]);
        var scale = 1.0;
        if (NORM) {
            scale = 1.0 / sqrt(sums.squares / f32(K) + EPS);
        }
        for (var r = lane; r < select(0u, 4u, tile < TILES); r += LANES) {
            store(t, tile, r, sums.products[r] * scale + bias_of(tile, r));
        }
    }
}
