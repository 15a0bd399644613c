// An element of silu.
fn value(i: u32) -> f32 {
    return silu(lhs[i]);
}
