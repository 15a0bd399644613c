// A workgroup normalizes one part of WIDTH elements.
var<workgroup> squares: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let part = min(wg.x + wg.y * GRID_X, PARTS - 1u);
    let start = part * WIDTH;
    var sum = 0.0;
    for (var i = local; i < WIDTH; i += WG) {
        let value = x[start + i];
        sum += value * value;
    }
    squares[local] = sum;
    workgroupBarrier();
    for (var stride = WG / 2u; stride > 0u; stride /= 2u) {
        if (local < stride) {
            squares[local] += squares[local + stride];
        }
        workgroupBarrier();
    }
    let scale = 1.0 / sqrt(squares[0] / f32(WIDTH) + EPS);
    for (var i = local; i < WIDTH; i += WG) {
        dst[start + i] = x[start + i] * scale * weight[WEIGHT_AT + i];
    }
}
