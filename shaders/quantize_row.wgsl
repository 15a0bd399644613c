// One token's activations, normalized if there is a norm, as signed bytes for products of very many rows: a word for
// 8 columns. One workgroup, since the norm needs them all.
@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
    var squares = 0.0;
    for (var k4 = local; k4 < K8 * 2u; k4 += WG) {
        let four = x4(0u, k4);
        squares += dot(four, four);
    }
    let mean = total_of(local, squares) / f32(K8 * 8u);
    let scale = select(1.0, 1.0 / sqrt(mean + EPS), NORM);
    for (var k = local; k < K8; k += WG) {
        var eight = bytes_of(k);
        eight.scale *= scale;
        dst[k] = packed(eight);
    }
}
