// One token's activations, normalized if there is a norm, as signed bytes for products of very many rows: a word for
// 8 columns. One workgroup, since the norm needs them all.
@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
    var squares = 0.0;
    for (var k = local; k < K8; k += WG) {
        let eight = bytes_of(k);
        squares += eight.squares;
        dst[k] = packed(eight);
    }
    if (!NORM) {
        return;
    }
    // What the norm makes of all is known only now.
    let scale = 1.0 / sqrt(total_of(local, squares) / f32(K8 * 8u) + EPS);
    for (var k = local; k < K8; k += WG) {
        dst[k].z = bitcast<u32>(bitcast<f32>(dst[k].z) * scale);
    }
}
