// Draws from the candidates in order of their logits: top_k, then top_p over their probabilities at temperature 1,
// then min_p, then the temperature. At most KEEP candidates: one invocation does it.
var<private> shares: array<f32, KEEP>;

@compute @workgroup_size(1)
fn main() {
    let best = bitcast<f32>(pairs[0].x);
    var count = min(min(max(state.top_k, 1u), KEEP), VOCABULARY);
    var total = 0.0;
    for (var i = 0u; i < count; i++) {
        shares[i] = exp(bitcast<f32>(pairs[i].x) - best);
        total += shares[i];
    }
    var sum = 0.0;
    var kept = 0u;
    while (kept < count && (kept == 0u || state.top_p >= 1.0 || sum < state.top_p * total)) {
        sum += shares[kept];
        kept += 1u;
    }
    while (kept > 1u && shares[kept - 1u] < state.min_p) {
        kept -= 1u;
    }
    let temperature = max(state.temperature, 1e-6);
    total = 0.0;
    for (var i = 0u; i < kept; i++) {
        shares[i] = exp((bitcast<f32>(pairs[i].x) - best) / temperature);
        total += shares[i];
    }
    let aim = uniform_draw(state.seed, state.counter) * total;
    var chosen = 0u;
    var below = shares[0];
    while (chosen + 1u < kept && below <= aim) {
        chosen += 1u;
        below += shares[chosen];
    }
    take(min(pairs[chosen].y, VOCABULARY - 1u));
}
