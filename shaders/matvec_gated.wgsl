// As `matvec` for two matrices of equal shape, the second TILES tiles after the first: silu(first) * second.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let lane = local % LANES;
    let tile = (wg.x + wg.y * GRID_X) * (WG / LANES) + local / LANES;
    let clamped = TILE_0 + min(tile, TILES - 1u);
    var gates: array<vec4<f32>, TOKENS>;
    var ups: array<vec4<f32>, TOKENS>;
    var squares: array<f32, TOKENS>;
    for (var k8 = lane; k8 < K8; k8 += LANES) {
        let gate = w_load(clamped, k8);
        let up = w_load(clamped + TILES, k8);
        let na = norm4(k8 * 2u);
        let nb = norm4(k8 * 2u + 1u);
        for (var t = 0u; t < TOKENS; t++) {
            let xa = x4(t, k8 * 2u);
            let xb = x4(t, k8 * 2u + 1u);
            if (NORM) {
                squares[t] += dot(xa, xa) + dot(xb, xb);
            }
            gates[t] += w_dot(gate, xa * na, xb * nb);
            ups[t] += w_dot(up, xa * na, xb * nb);
        }
    }
    for (var t = 0u; t < TOKENS; t++) {
        let gate = reduce(local, lane, gates[t], squares[t]);
        let up = reduce(local, lane, ups[t], squares[t]);
        var scale = 1.0;
        if (NORM) {
            scale = 1.0 / sqrt(gate.squares / f32(K) + EPS);
        }
        for (var r = lane; r < select(0u, 4u, tile < TILES); r += LANES) {
            let first = gate.products[r] * scale + bias_of(tile, r);
            let second = up.products[r] * scale + bias_of(tile + TILES, r);
            store(t, tile, r, silu(first) * second);
        }
    }
}
