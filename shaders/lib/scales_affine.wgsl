// 16 bytes a tile and group: word r holds row r's f16 scale (low half) and f16 bias.
struct Scales { scale: vec4<f32>, bias: vec4<f32> }

fn scales_word(group: u32) -> vec4<u32> {
    return weights[SCALES_AT + group];
}

fn w_scales(word: vec4<u32>, group: u32) -> Scales {
    let x = unpack2x16float(word.x);
    let y = unpack2x16float(word.y);
    let z = unpack2x16float(word.z);
    let w = unpack2x16float(word.w);
    let scale = vec4<f32>(x.x, y.x, z.x, w.x);
    return Scales(scale, vec4<f32>(x.y, y.y, z.y, w.y) - AFFINE_ZERO * scale);
}
