// One element an invocation. Rows are tokens of WIDTH elements: heads of HEAD_DIM.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let at = (wg.x + wg.y * GRID_X) * WG + local;
    if (at >= LEN) {
        return;
    }
    let token = min(at / WIDTH, state.tokens - 1u);
    let i = at % HEAD_DIM;
    dst[at] = turned(i, x[at], x[at - i + partner(i)], state.position + token);
}
