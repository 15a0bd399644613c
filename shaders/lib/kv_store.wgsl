// Writing a head's key and value of one token to the cache.
var<workgroup> own_key: array<vec4<f32>, HEAD_4>;
var<workgroup> own_value: array<vec4<f32>, HEAD_4>;

// Element i of a key head that starts at `base`, normalized and turned.
fn key_element(base: u32, i: u32, scale: f32, position: u32) -> f32 {
    let j = partner(i);
    let own = k[base + i] * scale * k_weight(i);
    let other = k[base + j] * scale * k_weight(j);
    return turned(i, own, other, position);
}

// The whole workgroup writes one head's key and value of one token to the cache. Uniform control flow is required.
fn kv_store(token: u32, kv_head: u32, local: u32) {
    let base = (token * KV_HEADS + kv_head) * HEAD_DIM;
    var scale = 1.0;
    if (HEAD_NORM) {
        var sum = 0.0;
        for (var i = local; i < HEAD_DIM; i += WG) {
            let value = k[base + i];
            sum += value * value;
        }
        scale = 1.0 / sqrt(total_of(local, sum) / f32(HEAD_DIM) + NORM_EPS);
    }
    let position = state.position + token;
    for (var i4 = local; i4 < HEAD_4; i4 += WG) {
        let i = i4 * 4u;
        own_key[i4] = vec4<f32>(
            key_element(base, i, scale, position),
            key_element(base, i + 1u, scale, position),
            key_element(base, i + 2u, scale, position),
            key_element(base, i + 3u, scale, position),
        );
        own_value[i4] = vec4<f32>(v[base + i], v[base + i + 1u], v[base + i + 2u], v[base + i + 3u]);
    }
    workgroupBarrier();
    kv_put(kv_head * CAPACITY + position, local);
}
