
// The elementwise value: a product.
fn value(i: u32) -> f32 {
    return lhs[i] * rhs[i];
}
