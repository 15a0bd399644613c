// Weights stored as integer codes with a scale and a bias per group: value = scale * code + bias.
// A step is one tile of 4 rows by 8 columns.
struct Weights8 {
    // Word r: four codes of row r, a byte each: columns 0..4 and 4..8 of the step.
    lo: vec4<u32>,
    hi: vec4<u32>,
    scale: vec4<f32>,
    bias: vec4<f32>,
}

// Columns of the step over the 4 rows: lo[j] is column j, hi[j] column 4 + j.
struct Block8 {
    lo: mat4x4<f32>,
    hi: mat4x4<f32>,
}

fn w_load(tile: u32, k8: u32) -> Weights8 {
    let codes = w_codes(tile, k8);
    let scales = w_scales(tile * GROUPS + k8 / GROUP_8);
    return Weights8(codes.lo, codes.hi, scales.scale, scales.bias);
}

// Products of the 4 rows with 8 activations. Codes are read as fractions of 255, which hardware unpacks in one go.
fn w_dot(w: Weights8, xa: vec4<f32>, xb: vec4<f32>) -> vec4<f32> {
    let products = vec4<f32>(
        dot(unpack4x8unorm(w.lo.x), xa) + dot(unpack4x8unorm(w.hi.x), xb),
        dot(unpack4x8unorm(w.lo.y), xa) + dot(unpack4x8unorm(w.hi.y), xb),
        dot(unpack4x8unorm(w.lo.z), xa) + dot(unpack4x8unorm(w.hi.z), xb),
        dot(unpack4x8unorm(w.lo.w), xa) + dot(unpack4x8unorm(w.hi.w), xb),
    );
    return (w.scale * 255.0) * products + w.bias * dot(xa + xb, vec4<f32>(1.0));
}

fn w_column(codes: vec4<u32>, shift: u32, w: Weights8) -> vec4<f32> {
    return vec4<f32>((codes >> vec4<u32>(shift)) & vec4<u32>(255u)) * w.scale + w.bias;
}

fn w_block(w: Weights8) -> Block8 {
    return Block8(
        mat4x4<f32>(w_column(w.lo, 0u, w), w_column(w.lo, 8u, w), w_column(w.lo, 16u, w), w_column(w.lo, 24u, w)),
        mat4x4<f32>(w_column(w.hi, 0u, w), w_column(w.hi, 8u, w), w_column(w.hi, 16u, w), w_column(w.hi, 24u, w)),
    );
}
