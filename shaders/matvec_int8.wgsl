// Matrix products with one token whose activations become signed bytes on the way. LANES invocations share SPAN tiles of
// 4 rows (of each matrix when there is a gate: SUMS in all) and walk their columns, 8 a step each. 8 activations have a
// scale of their own. Integer products cost a quarter of the arithmetic of floats.
var<private> sums: array<vec4<f32>, SUMS>;
var<private> squares: f32;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let lane = local % LANES;
    let first = ((wg.x + wg.y * GRID_X) * (WG / LANES) + local / LANES) * SPAN;
    stage(local);
    for (var k = lane; k < K8; k += LANES * UNROLL) {
        var w: array<Weights8, SUMS * UNROLL>;
        for (var u = 0u; u < UNROLL; u++) {
            for (var j = 0u; j < SUMS; j++) {
                w[u * SUMS + j] = w_load(TILE_0 + tile_of(first, j), k + u * LANES);
            }
        }
        for (var u = 0u; u < UNROLL; u++) {
            let x = x_bytes(k + u * LANES);
            if (NORM) {
                squares += x.squares;
            }
            for (var j = 0u; j < SUMS; j++) {
                sums[j] += w_products(w[u * SUMS + j], x);
            }
        }
    }
    reduce(local, lane);
    finish(first, local, lane);
}
