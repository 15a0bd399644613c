// Four elements of the cache as they are.
alias Kv4 = vec4<f32>;

fn kv_pack(x: vec4<f32>) -> Kv4 {
    return x;
}

fn kv_unpack(x: Kv4) -> vec4<f32> {
    return x;
}
