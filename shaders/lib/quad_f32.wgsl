// Four staged columns as they are.
alias Quad = vec4<f32>;

fn quad(x: vec4<f32>) -> Quad {
    return x;
}

fn wide(x: Quad) -> vec4<f32> {
    return x;
}
