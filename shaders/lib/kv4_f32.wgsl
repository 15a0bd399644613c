// A cache of floats, four elements a word.
alias KvWord = vec4<f32>;

fn key4(row: u32, i4: u32) -> vec4<f32> {
    return keys[row * HEAD_4 + i4];
}

fn value4(row: u32, i4: u32) -> vec4<f32> {
    return values[row * HEAD_4 + i4];
}
