// 16 bytes a tile and group: word r holds row r's f16 scale (low half) and f16 bias.
struct Scales { scale: vec4<f32>, bias: vec4<f32> }

alias StoredScales = vec4<u32>;

fn scales_stored(group: u32) -> StoredScales {
    return weights[SCALES_AT + group];
}

fn w_scales(stored: StoredScales) -> Scales {
    let x = unpack2x16float(stored.x);
    let y = unpack2x16float(stored.y);
    let z = unpack2x16float(stored.z);
    let w = unpack2x16float(stored.w);
    let scale = vec4<f32>(x.x, y.x, z.x, w.x);
    return Scales(scale, vec4<f32>(x.y, y.y, z.y, w.y) - AFFINE_ZERO * scale);
}
