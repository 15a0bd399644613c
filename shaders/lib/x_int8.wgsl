// Eight activations of one token become bytes.
fn bytes_of(k8: u32) -> Bytes8 {
    let xa = x4(0u, k8 * 2u);
    let xb = x4(0u, k8 * 2u + 1u);
    let a = xa * norm4(k8 * 2u);
    let b = xb * norm4(k8 * 2u + 1u);
    let tops = max(abs(a), abs(b));
    // The least float keeps all zeros from being divided by zero.
    let top = max(max(max(tops.x, tops.y), max(tops.z, tops.w)), 1e-30);
    let lo = pack4x8snorm(a / top);
    let hi = pack4x8snorm(b / top);
    let sum = dot4I8Packed(lo, 0x01010101u) + dot4I8Packed(hi, 0x01010101u);
    return Bytes8(lo, hi, top / 127.0, sum, dot(xa, xa) + dot(xb, xb));
}
