// The best KEEP of CHUNK candidates in order: a workgroup sorts a chunk (bitonic; Batcher, 1968).
// What is left over goes through again until one chunk is left.
var<workgroup> sorted: array<vec2<u32>, CHUNK>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    for (var i = local; i < CHUNK; i += WG) {
        let at = wg.x * CHUNK + i;
        var own = NOTHING;
        if (at < COUNT) {
            own = candidate(at);
        }
        sorted[i] = own;
    }
    workgroupBarrier();
    for (var size = 2u; size <= CHUNK; size *= 2u) {
        for (var stride = size / 2u; stride > 0u; stride /= 2u) {
            for (var i = local; i < CHUNK / 2u; i += WG) {
                let a = (i / stride) * stride * 2u + i % stride;
                let b = a + stride;
                let descending = (a & size) == 0u;
                if (better(sorted[b], sorted[a]) == descending) {
                    let swapped = sorted[a];
                    sorted[a] = sorted[b];
                    sorted[b] = swapped;
                }
            }
            workgroupBarrier();
        }
    }
    for (var i = local; i < KEEP; i += WG) {
        kept[wg.x * KEEP + i] = sorted[i];
    }
}
