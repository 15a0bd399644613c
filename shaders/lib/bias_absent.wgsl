// Without biases.
fn bias_of(tile: u32, r: u32) -> f32 {
    return 0.0;
}
