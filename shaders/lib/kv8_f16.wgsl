// A cache of f16 pairs, eight elements a word. The unpacking needs no f16 arithmetic.
alias KvWord = vec4<u32>;
alias Kv8 = vec4<u32>;

fn key8(row: u32, chunk: u32) -> Kv8 {
    return keys[row * CHUNKS + chunk];
}

fn value8(row: u32, chunk: u32) -> Kv8 {
    return values[row * CHUNKS + chunk];
}

fn kv8_lo(x: Kv8) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(x.x), unpack2x16float(x.y));
}

fn kv8_hi(x: Kv8) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(x.z), unpack2x16float(x.w));
}

fn kv8_pack(lo: vec4<f32>, hi: vec4<f32>) -> KvWord {
    return vec4<u32>(pack2x16float(lo.xy), pack2x16float(lo.zw), pack2x16float(hi.xy), pack2x16float(hi.zw));
}

// The workgroup writes the heads of `own_key` and `own_value`.
fn kv_put(row: u32, local: u32) {
    for (var chunk = local; chunk < CHUNKS; chunk += WG) {
        keys[row * CHUNKS + chunk] = kv8_pack(own_key[chunk * 2u], own_key[chunk * 2u + 1u]);
        values[row * CHUNKS + chunk] = kv8_pack(own_value[chunk * 2u], own_value[chunk * 2u + 1u]);
    }
}
