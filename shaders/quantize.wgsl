// Activations as signed bytes for matrix products: an invocation makes one block of 32 columns of a token. Three words
// of 16 bytes a block: columns 0..16, columns 16..32, then the scale and the sums of either half's bytes.
fn sum_of(bytes: vec4<u32>) -> u32 {
    let ones = 0x01010101u;
    return bitcast<u32>(
        dot4I8Packed(bytes.x, ones) + dot4I8Packed(bytes.y, ones) + dot4I8Packed(bytes.z, ones)
            + dot4I8Packed(bytes.w, ones),
    );
}

fn bytes_of(x: mat4x4<f32>) -> vec4<u32> {
    return vec4<u32>(pack4x8snorm(x[0]), pack4x8snorm(x[1]), pack4x8snorm(x[2]), pack4x8snorm(x[3]));
}

fn top_of(x: mat4x4<f32>) -> vec4<f32> {
    return max(max(abs(x[0]), abs(x[1])), max(abs(x[2]), abs(x[3])));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = (wg.x + wg.y * GRID_X) * WG + local;
    let token = i / (K8 / 4u);
    if (token >= min(state.tokens, TOKENS)) {
        return;
    }
    let k4 = i % (K8 / 4u) * 8u;
    let lo = mat4x4<f32>(x4(token, k4), x4(token, k4 + 1u), x4(token, k4 + 2u), x4(token, k4 + 3u));
    let hi = mat4x4<f32>(x4(token, k4 + 4u), x4(token, k4 + 5u), x4(token, k4 + 6u), x4(token, k4 + 7u));
    let tops = max(top_of(lo), top_of(hi));
    // The least keeps all zeros from being divided by zero.
    let top = max(max(max(tops.x, tops.y), max(tops.z, tops.w)), 1e-30);
    let lo_bytes = bytes_of(lo * (1.0 / top));
    let hi_bytes = bytes_of(hi * (1.0 / top));
    dst[i * 3u] = lo_bytes;
    dst[i * 3u + 1u] = hi_bytes;
    dst[i * 3u + 2u] = vec4<u32>(bitcast<u32>(top / 127.0), sum_of(lo_bytes), sum_of(hi_bytes), 0u);
}
