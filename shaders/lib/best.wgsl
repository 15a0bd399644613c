// The best candidate of a workgroup.
var<workgroup> best: array<vec2<u32>, WG>;

// The best of the candidates of all invocations. Uniform control flow is required, once a kernel.
fn best_of(local: u32, own: vec2<u32>) -> vec2<u32> {
    best[local] = own;
    workgroupBarrier();
    for (var stride = WG / 2u; stride > 0u; stride /= 2u) {
        if (local < stride && better(best[local + stride], best[local])) {
            best[local] = best[local + stride];
        }
        workgroupBarrier();
    }
    return best[0];
}
