// A workgroup writes one query head of one token, normalized, turned and scaled: grid (tokens, heads).
fn query_element(base: u32, i: u32, scale: f32, position: u32) -> f32 {
    let j = partner(i);
    return turned(i, q[base + i] * scale * q_weight(i), q[base + j] * scale * q_weight(j), position);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    if (wg.x >= state.tokens) {
        return;
    }
    let base = (wg.x * HEADS + wg.y) * HEAD_DIM;
    var scale = SCALE;
    if (HEAD_NORM) {
        var sum = 0.0;
        for (var i = local; i < HEAD_DIM; i += WG) {
            sum += q[base + i] * q[base + i];
        }
        scale = SCALE / sqrt(total_of(local, sum) / f32(HEAD_DIM) + NORM_EPS);
    }
    let position = state.position + wg.x;
    for (var i = local; i < HEAD_DIM; i += WG) {
        dst[base + i] = query_element(base, i, scale, position);
    }
}
