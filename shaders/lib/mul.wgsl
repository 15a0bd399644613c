// An element of the product.
fn value(i: u32) -> f32 {
    return lhs[i] * rhs[i];
}
