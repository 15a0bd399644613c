// Without a rotary embedding nothing turns.
fn turn_of(position: u32, pair: u32) -> vec2<f32> {
    return vec2<f32>(1.0, 0.0);
}
