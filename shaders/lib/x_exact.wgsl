// Four activations of a token. K is a multiple of 32: no step reaches past the row.
fn x4(token: u32, k4: u32) -> vec4<f32> {
    return x[token * (K8 * 2u) + k4];
}
