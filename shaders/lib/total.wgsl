// A sum over the workgroup, for all its invocations. Uniform control flow is required, once a kernel.
var<workgroup> shares: array<f32, WG>;

fn total_of(local: u32, own: f32) -> f32 {
    shares[local] = own;
    workgroupBarrier();
    for (var stride = WG / 2u; stride > 0u; stride /= 2u) {
        if (local < stride) {
            shares[local] += shares[local + stride];
        }
        workgroupBarrier();
    }
    return shares[0];
}
