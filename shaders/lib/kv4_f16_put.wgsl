// Writing to a cache of f16 pairs, four elements a word.
fn kv_pack(x: vec4<f32>) -> KvWord {
    return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw));
}

// The workgroup writes the heads of `own_key` and `own_value`.
fn kv_put(row: u32, local: u32) {
    for (var i4 = local; i4 < HEAD_4; i4 += WG) {
        keys[row * HEAD_4 + i4] = kv_pack(own_key[i4]);
        values[row * HEAD_4 + i4] = kv_pack(own_value[i4]);
    }
}
