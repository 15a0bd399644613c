// Four elements of the cache as f16 pairs. The unpacking needs no f16 arithmetic.
alias Kv4 = vec2<u32>;

fn kv_pack(x: vec4<f32>) -> Kv4 {
    return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw));
}

fn kv_unpack(x: Kv4) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(x.x), unpack2x16float(x.y));
}
