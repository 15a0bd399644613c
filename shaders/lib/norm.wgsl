// Weights of the fused norm.
fn norm4(k4: u32) -> vec4<f32> {
    return norm[NORM_AT_4 + k4];
}
