// Products of the 4 rows of a step with 8 bytes; every row has a bias.
fn w_products(w: Weights8, x: Bytes8) -> vec4<f32> {
    return x.scale * (w.scale * w_dots(w, x) + w.bias * f32(x.sum));
}
