// Four activations of a token, zeros past the row's K elements.
fn x1(token: u32, k: u32) -> f32 {
    return select(0.0, x[token * K + min(k, K - 1u)], k < K);
}

fn x4(token: u32, k4: u32) -> vec4<f32> {
    let k = k4 * 4u;
    return vec4<f32>(x1(token, k), x1(token, k + 1u), x1(token, k + 2u), x1(token, k + 3u));
}
