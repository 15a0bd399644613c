// Row-major f16: 8 columns are one word.
fn w_row(row: u32, k8: u32) -> Row8 {
    let p = weights[row * K8 + k8];
    return Row8(
        vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y)),
        vec4<f32>(unpack2x16float(p.z), unpack2x16float(p.w)),
    );
}
