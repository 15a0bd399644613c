// A 2-bit plane (as in b2) and a plane of third bits: 16 bytes are 32 columns, bit i of byte j is column 4 i + j.
struct Codes8 { lo: vec4<u32>, hi: vec4<u32> }

struct StoredCodes { low: vec4<u32>, high: vec4<u32> }

fn w_stored(tile: u32, k8: u32) -> StoredCodes {
    return StoredCodes(weights[tile * (K8 / 2u) + k8 / 2u], weights[HIGH_AT + tile * (K8 / 4u) + k8 / 4u]);
}

fn w_codes(stored: StoredCodes, k8: u32) -> Codes8 {
    let p = stored.low >> vec4<u32>((k8 % 2u) * 4u);
    let high = stored.high >> vec4<u32>((k8 % 4u) * 2u);
    let lo = (high & vec4<u32>(0x01010101u)) << vec4<u32>(2u);
    let hi = ((high >> vec4<u32>(1u)) & vec4<u32>(0x01010101u)) << vec4<u32>(2u);
    return Codes8((p & vec4<u32>(0x03030303u)) | lo, ((p >> vec4<u32>(2u)) & vec4<u32>(0x03030303u)) | hi);
}
