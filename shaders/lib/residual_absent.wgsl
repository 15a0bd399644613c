// Without a residual.
fn residual_of(at: u32) -> f32 {
    return 0.0;
}
