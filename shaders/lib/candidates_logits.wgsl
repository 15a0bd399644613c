// Candidates are the logits themselves: the id is the place.
fn candidate(i: u32) -> vec2<u32> {
    return vec2<u32>(bitcast<u32>(logits[i]), i);
}
