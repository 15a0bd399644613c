// The workgroup turns all activations into bytes once, in workgroup memory, for all its lanes.
const SQUARE_GROUPS: u32 = WG / LANES;

// Bytes 0..4 and 4..8 of a step, the bits of their scale, and their sum.
var<workgroup> staged: array<vec4<u32>, K8>;

fn stage(local: u32) {
    for (var k = local; k < K8; k += WG) {
        let x = bytes_of(k);
        staged[k] = vec4<u32>(x.lo, x.hi, bitcast<u32>(x.scale), bitcast<u32>(x.sum));
        squares += x.squares;
    }
    workgroupBarrier();
}

fn x_bytes(k8: u32) -> Bytes8 {
    let x = staged[k8];
    return Bytes8(x.x, x.y, bitcast<f32>(x.z), bitcast<i32>(x.w), 0.0);
}
