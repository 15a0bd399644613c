
// Heads without a norm: weights of one.
fn q_weight(i: u32) -> f32 {
    return 1.0;
}

fn k_weight(i: u32) -> f32 {
    return 1.0;
}
