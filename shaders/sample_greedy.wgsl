// Takes the best of the COUNT candidates that the chunks kept: one workgroup.
@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
    var own = NOTHING;
    for (var i = local; i < COUNT; i += WG) {
        if (better(pairs[i], own)) {
            own = pairs[i];
        }
    }
    let taken = best_of(local, own);
    if (local == 0u) {
        take(min(taken.y, VOCABULARY - 1u));
    }
}
