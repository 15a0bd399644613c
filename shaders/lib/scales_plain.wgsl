// 8 bytes a tile and group: four f16 scales; the bias is -ZERO scales.
struct Scales { scale: vec4<f32>, bias: vec4<f32> }

fn scales_word(group: u32) -> vec4<u32> {
    return weights[SCALES_AT + group / 2u];
}

fn w_scales(word: vec4<u32>, group: u32) -> Scales {
    let pair = select(word.xy, word.zw, (group & 1u) == 1u);
    let scale = vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
    return Scales(scale, -ZERO * scale);
}
