
// The elementwise value: a gated product.
fn value(i: u32) -> f32 {
    return silu(lhs[i]) * rhs[i];
}
