
// What is added to a product.
fn residual_of(at: u32) -> f32 {
    return residual[at];
}
