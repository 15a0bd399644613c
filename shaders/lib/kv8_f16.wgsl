// Eight elements of the cache as f16 pairs. The unpacking needs no f16 arithmetic.
alias Kv8 = vec4<u32>;

fn kv8_pack(lo: vec4<f32>, hi: vec4<f32>) -> Kv8 {
    return vec4<u32>(pack2x16float(lo.xy), pack2x16float(lo.zw), pack2x16float(hi.xy), pack2x16float(hi.zw));
}

fn kv8_lo(x: Kv8) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(x.x), unpack2x16float(x.y));
}

fn kv8_hi(x: Kv8) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(x.z), unpack2x16float(x.w));
}
