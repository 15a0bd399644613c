// Weights stored as floats. A step is one tile of 4 rows by 8 columns.
struct Row8 { a: vec4<f32>, b: vec4<f32> }

struct Weights8 { r0: Row8, r1: Row8, r2: Row8, r3: Row8 }

// Columns of the step over the 4 rows: lo[j] is column j, hi[j] column 4 + j.
struct Block8 {
    lo: mat4x4<f32>,
    hi: mat4x4<f32>,
}

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

fn w_block(w: Weights8) -> Block8 {
    return Block8(
        transpose(mat4x4<f32>(w.r0.a, w.r1.a, w.r2.a, w.r3.a)),
        transpose(mat4x4<f32>(w.r0.b, w.r1.b, w.r2.b, w.r3.b)),
    );
}
