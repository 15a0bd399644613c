// (cos, sin) of a pair at a position.
fn turn_of(position: u32, pair: u32) -> vec2<f32> {
    return table[position * PAIRS + pair];
}
