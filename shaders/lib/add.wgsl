// An element of the sum.
fn value(i: u32) -> f32 {
    return lhs[i] + rhs[i];
}
