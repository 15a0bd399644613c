// A cache of signed bytes, eight elements a word; behind them the largest magnitude of every block of 32, the tops of two
// blocks a word, KV_PAIRS words a head.
alias KvWord = vec2<u32>;
struct Kv8 { codes: vec2<u32>, top: f32 }

// The word and the part of it with the top of a chunk of eight.
fn top_at(row: u32, chunk: u32) -> vec2<u32> {
    return vec2<u32>(KV_TOPS_AT + row * KV_PAIRS + chunk / 8u, (chunk / 4u) % 2u);
}

fn key8(row: u32, chunk: u32) -> Kv8 {
    let at = top_at(row, chunk);
    let tops = keys[at.x];
    return Kv8(keys[row * CHUNKS + chunk], bitcast<f32>(select(tops.x, tops.y, at.y == 1u)));
}

fn value8(row: u32, chunk: u32) -> Kv8 {
    let at = top_at(row, chunk);
    let tops = values[at.x];
    return Kv8(values[row * CHUNKS + chunk], bitcast<f32>(select(tops.x, tops.y, at.y == 1u)));
}

fn kv8_lo(x: Kv8) -> vec4<f32> {
    return x.top * unpack4x8snorm(x.codes.x);
}

fn kv8_hi(x: Kv8) -> vec4<f32> {
    return x.top * unpack4x8snorm(x.codes.y);
}

fn key4(row: u32, i4: u32) -> vec4<f32> {
    let x = key8(row, i4 / 2u);
    return x.top * unpack4x8snorm(select(x.codes.x, x.codes.y, i4 % 2u == 1u));
}

fn value4(row: u32, i4: u32) -> vec4<f32> {
    let x = value8(row, i4 / 2u);
    return x.top * unpack4x8snorm(select(x.codes.x, x.codes.y, i4 % 2u == 1u));
}
