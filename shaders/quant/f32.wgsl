// Row-major f32: 8 columns are two words.
fn w_row(row: u32, k8: u32) -> Row8 {
    let at = row * (K8 * 2u) + k8 * 2u;
    return Row8(bitcast<vec4<f32>>(weights[at]), bitcast<vec4<f32>>(weights[at + 1u]));
}
