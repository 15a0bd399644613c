// The best of CHUNK candidates: a workgroup a chunk. What is left over goes through again until one is left.
const NOTHING: vec2<u32> = vec2<u32>(0xff7fffffu, 0xffffffffu);

var<workgroup> best: array<vec2<u32>, WG>;

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
    best[local] = own;
    workgroupBarrier();
    for (var stride = WG / 2u; stride > 0u; stride /= 2u) {
        if (local < stride && better(best[local + stride], best[local])) {
            best[local] = best[local + stride];
        }
        workgroupBarrier();
    }
    if (local == 0u) {
        kept[wg.x] = best[0];
    }
}
