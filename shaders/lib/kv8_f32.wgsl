// Eight elements of the cache as they are.
struct Kv8 { lo: vec4<f32>, hi: vec4<f32> }

fn kv8_pack(lo: vec4<f32>, hi: vec4<f32>) -> Kv8 {
    return Kv8(lo, hi);
}

fn kv8_lo(x: Kv8) -> vec4<f32> {
    return x.lo;
}

fn kv8_hi(x: Kv8) -> vec4<f32> {
    return x.hi;
}
