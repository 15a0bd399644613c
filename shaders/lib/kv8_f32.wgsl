// A cache of floats, eight elements a word.
struct Kv8 { lo: vec4<f32>, hi: vec4<f32> }
alias KvWord = Kv8;

fn key8(row: u32, chunk: u32) -> Kv8 {
    return keys[row * CHUNKS + chunk];
}

fn value8(row: u32, chunk: u32) -> Kv8 {
    return values[row * CHUNKS + chunk];
}

fn kv8_lo(x: Kv8) -> vec4<f32> {
    return x.lo;
}

fn kv8_hi(x: Kv8) -> vec4<f32> {
    return x.hi;
}

// The workgroup writes the heads of `own_key` and `own_value`.
fn kv_put(row: u32, local: u32) {
    for (var chunk = local; chunk < CHUNKS; chunk += WG) {
        keys[row * CHUNKS + chunk] = Kv8(own_key[chunk * 2u], own_key[chunk * 2u + 1u]);
        values[row * CHUNKS + chunk] = Kv8(own_value[chunk * 2u], own_value[chunk * 2u + 1u]);
    }
}
