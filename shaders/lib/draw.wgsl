// The draw of number `counter`, uniform in [0, 1): two rounds of the PCG-RXS-M-XS 32-bit hash
// (O'Neill, 2014; Jarzynski and Olano, 2020), as on every backend.
fn hash(x: u32) -> u32 {
    let bits = x * 747796405u + 2891336453u;
    let word = ((bits >> ((bits >> 28u) + 4u)) ^ bits) * 277803737u;
    return (word >> 22u) ^ word;
}

fn uniform_draw(seed: u32, counter: u32) -> f32 {
    return f32(hash(seed ^ hash(counter)) >> 8u) / 16777216.0;
}
