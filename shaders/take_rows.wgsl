// The last ROWS rows of the step's real tokens; rows that do not exist are left alone.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = (wg.x + wg.y * GRID_X) * WG + local;
    let rows = min(ROWS, state.tokens);
    if (i < rows * WIDTH) {
        dst[i] = x[(state.tokens - rows) * WIDTH + i];
    }
}
