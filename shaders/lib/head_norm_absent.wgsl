// Without head norms every weight is one.
fn q_weight(i: u32) -> f32 {
    return 1.0;
}

fn k_weight(i: u32) -> f32 {
    return 1.0;
}
