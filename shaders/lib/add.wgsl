
// The elementwise value: a sum.
fn value(i: u32) -> f32 {
    return lhs[i] + rhs[i];
}
