// Weights of the norms of query and key heads.
fn q_weight(i: u32) -> f32 {
    return head_norms[Q_NORM_AT + i];
}

fn k_weight(i: u32) -> f32 {
    return head_norms[K_NORM_AT + i];
}
