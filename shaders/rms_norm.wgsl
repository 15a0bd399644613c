// A workgroup normalizes one part of WIDTH elements.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let part = min(wg.x + wg.y * GRID_X, PARTS - 1u);
    let start = part * WIDTH;
    var sum = 0.0;
    for (var i = local; i < WIDTH; i += WG) {
        let value = x[start + i];
        sum += value * value;
    }
    let scale = 1.0 / sqrt(total_of(local, sum) / f32(WIDTH) + EPS);
    for (var i = local; i < WIDTH; i += WG) {
        dst[start + i] = x[start + i] * scale * weight[WEIGHT_AT + i];
    }
}
