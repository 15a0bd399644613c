// Puts the splits of matrix products together: an invocation a row of a token.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = (wg.x + wg.y * GRID_X) * WG + local;
    let token = i / (TILES * 4u);
    if (token >= min(state.tokens, TOKENS)) {
        return;
    }
    var sum = 0.0;
    for (var s = 0u; s < SPLITS; s++) {
        sum += sums[s * TOKENS * TILES * 4u + i];
    }
    put_row(token, i % (TILES * 4u), sum);
}
