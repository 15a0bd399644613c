// Puts the splits of one token's attention together: a workgroup a query head.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first = first_visible(state.position);
    let count = min(state.position + 1u, CAPACITY) - first;
    let share = keys_per_split(count);
    let used = min((count + share - 1u) / share, SPLITS);
    let head = wg.x;
    for (var i4 = local; i4 < HEAD_4; i4 += WG) {
        var maximum = -1e30;
        for (var s = 0u; s < used; s++) {
            maximum = max(maximum, splits[(s * HEADS + head) * (HEAD_4 + 1u) + HEAD_4].x);
        }
        var sum = vec4<f32>(0.0);
        var denominator = 0.0;
        for (var s = 0u; s < used; s++) {
            let at = (s * HEADS + head) * (HEAD_4 + 1u);
            let own = splits[at + HEAD_4];
            let factor = exp(own.x - maximum);
            sum += splits[at + i4] * factor;
            denominator += own.y * factor;
        }
        dst[head * HEAD_4 + i4] = sum / max(denominator, 1e-30);
    }
}
