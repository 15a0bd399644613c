// 8 bytes a tile and group: four f16 scales; the bias is -ZERO scales.
struct Scales { scale: vec4<f32>, bias: vec4<f32> }

fn w_scales(group: u32) -> Scales {
    let word = weights[SCALES_AT + group / 2u];
    let pair = select(word.xy, word.zw, (group & 1u) == 1u);
    let scale = vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
    return Scales(scale, -ZERO * scale);
}
