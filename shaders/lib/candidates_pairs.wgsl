// Candidates are pairs (bits of the logit, id) that an earlier round kept.
fn candidate(i: u32) -> vec2<u32> {
    return pairs[i];
}
