// Products of the 4 rows of a step with 8 bytes; the codes' zero stands for the bias.
fn w_products(w: Weights8, x: Bytes8) -> vec4<f32> {
    return (w.scale * x.scale) * w_dots(w, x);
}
