// Weights stored as floats. A step is one tile of 4 rows by 8 columns.
// Columns 0..4 and 4..8 of one row of the step.
struct Row8 { a: vec4<f32>, b: vec4<f32> }

struct Weights8 { r0: Row8, r1: Row8, r2: Row8, r3: Row8 }

fn w_load(tile: u32, k8: u32) -> Weights8 {
    let row = tile * 4u;
    return Weights8(w_row(row, k8), w_row(row + 1u, k8), w_row(row + 2u, k8), w_row(row + 3u, k8));
}

// Products of the 4 rows with 8 activations.
fn w_dot(w: Weights8, xa: vec4<f32>, xb: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        dot(w.r0.a, xa) + dot(w.r0.b, xb),
        dot(w.r1.a, xa) + dot(w.r1.b, xb),
        dot(w.r2.a, xa) + dot(w.r2.b, xb),
        dot(w.r3.a, xa) + dot(w.r3.b, xb),
    );
}

// The values of row r.
fn w_decoded(w: Weights8, r: u32) -> Row8 {
    switch (r) {
        case 0u: { return w.r0; }
        case 1u: { return w.r1; }
        case 2u: { return w.r2; }
        default: { return w.r3; }
    }
}
