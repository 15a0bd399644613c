// Biases of all matrices, each padded to whole tiles as the matrices are.
fn bias_of(tile: u32, r: u32) -> f32 {
    return bias[BIAS_AT + tile * 4u + r];
}
