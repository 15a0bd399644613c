// What is added to the output.
fn residual_of(at: u32) -> f32 {
    return residual[at];
}
