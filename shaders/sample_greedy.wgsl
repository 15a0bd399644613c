// Takes the best of the COUNT candidates that the chunks kept: one workgroup.
const NOTHING: vec2<u32> = vec2<u32>(0xff7fffffu, 0xffffffffu);

var<workgroup> best: array<vec2<u32>, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
    var own = NOTHING;
    for (var i = local; i < COUNT; i += WG) {
        if (better(pairs[i], own)) {
            own = pairs[i];
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
        take(min(best[0].y, VOCABULARY - 1u));
    }
}
