// Writing to a cache of signed bytes. Four elements of the heads in workgroup memory; zeros past the head.
fn put_key4(i4: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), own_key[min(i4, HEAD_4 - 1u)], i4 < HEAD_4);
}

fn put_value4(i4: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), own_value[min(i4, HEAD_4 - 1u)], i4 < HEAD_4);
}

fn largest4(x: vec4<f32>) -> f32 {
    let a = abs(x);
    return max(max(a.x, a.y), max(a.z, a.w));
}

// The largest magnitudes of a block of the key and of the value. The least float keeps zeros from being divided by zero.
fn put_tops(block: u32) -> vec2<f32> {
    var tops = vec2<f32>(1e-30);
    for (var i = 0u; i < 8u; i++) {
        tops = max(tops, vec2<f32>(largest4(put_key4(block * 8u + i)), largest4(put_value4(block * 8u + i))));
    }
    return tops;
}

// The workgroup writes the heads of `own_key` and `own_value`.
fn kv_put(row: u32, local: u32) {
    for (var chunk = local; chunk < CHUNKS; chunk += WG) {
        let i4 = chunk * 2u;
        let tops = put_tops(chunk / 4u);
        keys[row * CHUNKS + chunk] =
            vec2<u32>(pack4x8snorm(put_key4(i4) / tops.x), pack4x8snorm(put_key4(i4 + 1u) / tops.x));
        values[row * CHUNKS + chunk] =
            vec2<u32>(pack4x8snorm(put_value4(i4) / tops.y), pack4x8snorm(put_value4(i4 + 1u) / tops.y));
        if (chunk % 8u == 0u) {
            let next = put_tops(chunk / 4u + 1u);
            keys[top_at(row, chunk).x] = vec2<u32>(bitcast<u32>(tops.x), bitcast<u32>(next.x));
            values[top_at(row, chunk).x] = vec2<u32>(bitcast<u32>(tops.y), bitcast<u32>(next.y));
        }
    }
}
