// Weights stored as integer codes with a scale and a bias per group: value = scale * code + bias.
// A step is one tile of 4 rows by 8 columns.
struct Weights8 {
    // Word r: four codes of row r, a byte each: columns 0..4 and 4..8 of the step.
    lo: vec4<u32>,
    hi: vec4<u32>,
    scale: vec4<f32>,
    bias: vec4<f32>,
}

// Columns 0..4 and 4..8 of one row of the step.
struct Row8 { a: vec4<f32>, b: vec4<f32> }

// A step as memory gives it.
struct Stored8 { codes: StoredCodes, scales: StoredScales }

fn w_fetch(tile: u32, k8: u32) -> Stored8 {
    return Stored8(w_stored(tile, k8), scales_stored(tile * GROUPS + k8 / GROUP_8));
}

fn w_opened(stored: Stored8, k8: u32) -> Weights8 {
    let codes = w_codes(stored.codes, k8);
    let scales = w_scales(stored.scales);
    return Weights8(codes.lo, codes.hi, scales.scale, scales.bias);
}

fn w_load(tile: u32, k8: u32) -> Weights8 {
    return w_opened(w_fetch(tile, k8), k8);
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

fn w_codes4(codes: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(codes) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}

// The values of row r.
fn w_decoded(w: Weights8, r: u32) -> Row8 {
    return Row8(w_codes4(w.lo[r]) * w.scale[r] + w.bias[r], w_codes4(w.hi[r]) * w.scale[r] + w.bias[r]);
}
