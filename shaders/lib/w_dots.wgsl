// Integer products of the 4 rows of a step with 8 bytes, where code ZERO_CODE stands for zero.
fn w_dots(w: Weights8, x: Bytes8) -> vec4<f32> {
    let lo = w.lo ^ vec4<u32>(FLIP);
    let hi = w.hi ^ vec4<u32>(FLIP);
    let zero = -ZERO_CODE * x.sum;
    return vec4<f32>(vec4<i32>(
        dot4I8Packed(lo.x, x.lo) + dot4I8Packed(hi.x, x.hi) + zero,
        dot4I8Packed(lo.y, x.lo) + dot4I8Packed(hi.y, x.hi) + zero,
        dot4I8Packed(lo.z, x.lo) + dot4I8Packed(hi.z, x.hi) + zero,
        dot4I8Packed(lo.w, x.lo) + dot4I8Packed(hi.w, x.hi) + zero,
    ));
}
