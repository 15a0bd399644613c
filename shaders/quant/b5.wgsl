// A nibble plane, and a plane of fifth bits: 16 bytes are 32 columns, bit i of byte j is column 4 i + j.
struct Codes8 { lo: vec4<u32>, hi: vec4<u32> }

struct StoredCodes { low: vec4<u32>, high: vec4<u32> }

fn w_stored(tile: u32, k8: u32) -> StoredCodes {
    return StoredCodes(weights[tile * K8 + k8], weights[HIGH_AT + tile * (K8 / 4u) + k8 / 4u]);
}

fn w_codes(stored: StoredCodes, k8: u32) -> Codes8 {
    let p = stored.low;
    let high = stored.high >> vec4<u32>((k8 % 4u) * 2u);
    let lo = (high & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
    let hi = ((high >> vec4<u32>(1u)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
    return Codes8(
        (p & vec4<u32>(0x0f0f0f0fu)) | lo,
        ((p >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | hi,
    );
}
