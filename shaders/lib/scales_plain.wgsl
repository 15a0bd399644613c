// 8 bytes a tile and group: four f16 scales; the bias is -ZERO scales.
struct Scales { scale: vec4<f32>, bias: vec4<f32> }

alias StoredScales = vec2<u32>;

fn scales_stored(group: u32) -> StoredScales {
    return tile_scales[SCALES_AT * 2u + group];
}

fn w_scales(stored: StoredScales) -> Scales {
    let scale = vec4<f32>(unpack2x16float(stored.x), unpack2x16float(stored.y));
    return Scales(scale, -ZERO * scale);
}
