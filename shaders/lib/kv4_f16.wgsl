// A cache of f16 pairs, four elements a word. The unpacking needs no f16 arithmetic.
alias KvWord = vec2<u32>;

fn key4(row: u32, i4: u32) -> vec4<f32> {
    let x = keys[row * HEAD_4 + i4];
    return vec4<f32>(unpack2x16float(x.x), unpack2x16float(x.y));
}

fn value4(row: u32, i4: u32) -> vec4<f32> {
    let x = values[row * HEAD_4 + i4];
    return vec4<f32>(unpack2x16float(x.x), unpack2x16float(x.y));
}
