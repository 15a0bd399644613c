// Takes the best candidate.
@compute @workgroup_size(1)
fn main() {
    take(min(pairs[0].y, VOCABULARY - 1u));
}
