// Eight activations as signed bytes: value = scale * byte. `sum` is that of the bytes, `squares` that of the
// activations before the norm's weights.
struct Bytes8 { lo: u32, hi: u32, scale: f32, sum: i32, squares: f32 }

// The word that stands for them in memory, without the squares.
fn packed(x: Bytes8) -> vec4<u32> {
    return vec4<u32>(x.lo, x.hi, bitcast<u32>(x.scale), bitcast<u32>(x.sum));
}

fn unpacked(word: vec4<u32>) -> Bytes8 {
    return Bytes8(word.x, word.y, bitcast<f32>(word.z), bitcast<i32>(word.w), 0.0);
}
