// A workgroup writes one head's key and value of one token: grid (tokens, heads).
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    if (wg.x >= state.tokens || state.position + wg.x >= CAPACITY) {
        return;
    }
    kv_store(wg.x, wg.y, local);
}
