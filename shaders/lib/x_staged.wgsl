// The workgroup turns all activations into bytes once, in workgroup memory, for all its lanes.
const SQUARE_GROUPS: u32 = WG / LANES;

var<workgroup> staged: array<vec4<u32>, K8>;

fn stage(local: u32) {
    for (var k = local; k < K8; k += WG) {
        let x = bytes_of(k);
        staged[k] = packed(x);
        squares += x.squares;
    }
    workgroupBarrier();
}

fn x_bytes(k8: u32) -> Bytes8 {
    return unpacked(staged[k8]);
}
