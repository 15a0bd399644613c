// The best of CHUNK candidates: a workgroup a chunk.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    var own = NOTHING;
    for (var i = local; i < CHUNK; i += WG) {
        let at = wg.x * CHUNK + i;
        if (at < COUNT) {
            let other = candidate(at);
            if (better(other, own)) {
                own = other;
            }
        }
    }
    let kept_one = best_of(local, own);
    if (local == 0u) {
        kept[wg.x] = kept_one;
    }
}
