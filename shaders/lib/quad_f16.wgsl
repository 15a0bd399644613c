// Four staged columns as f16, kept finite.
alias Quad = vec4<f16>;

fn quad(x: vec4<f32>) -> Quad {
    return Quad(clamp(x, vec4<f32>(-65504.0), vec4<f32>(65504.0)));
}

fn wide(x: Quad) -> vec4<f32> {
    return vec4<f32>(x);
}
