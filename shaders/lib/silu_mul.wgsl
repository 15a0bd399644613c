// An element of silu(gate) * up.
fn value(i: u32) -> f32 {
    return silu(lhs[i]) * rhs[i];
}
