// As `matvec_int8`, with the weights of a lane's next step on their way while it multiplies those of this one.
var<private> sums: array<vec4<f32>, SUMS>;
var<private> squares: f32;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let lane = local % LANES;
    let first = ((wg.x + wg.y * GRID_X) * (WG / LANES) + local / LANES) * SPAN;
    var next: array<Stored8, SUMS>;
    // unroll
    for (var j = 0u; j < SUMS; j++) {
        next[j] = w_fetch(TILE_0 + tile_of(first, j), min(lane, K8 - 1u));
    }
    stage(local);
    for (var k = lane; k < K8; k += LANES) {
        let x = x_bytes(k);
        if (NORM) {
            squares += x.squares;
        }
        var stored = next;
        // unroll
        for (var j = 0u; j < SUMS; j++) {
            next[j] = w_fetch(TILE_0 + tile_of(first, j), min(k + LANES, K8 - 1u));
        }
        // unroll
        for (var j = 0u; j < SUMS; j++) {
            sums[j] += w_products(w_opened(stored[j], k), x);
        }
    }
    reduce(local, lane);
    finish(first, local, lane);
}
