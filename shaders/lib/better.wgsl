// A candidate is the bits of a logit and its id; this one comes after all others.
const NOTHING: vec2<u32> = vec2<u32>(0xff7fffffu, 0xffffffffu);

// Whether a candidate (bits of the logit, id) comes before another: the higher logit, the lower id among equals.
fn better(a: vec2<u32>, b: vec2<u32>) -> bool {
    let x = bitcast<f32>(a.x);
    let y = bitcast<f32>(b.x);
    return x > y || (x == y && a.y < b.y);
}
