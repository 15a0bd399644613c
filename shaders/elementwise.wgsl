// One element an invocation; the part says what `value` is.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = (wg.x + wg.y * GRID_X) * WG + local;
    if (i < LEN) {
        dst[i] = value(i);
    }
}
