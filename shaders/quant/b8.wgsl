// A byte plane of signed codes: 16 bytes are 4 columns. Flipping the sign bit makes code + 128, unsigned.
struct Codes8 { lo: vec4<u32>, hi: vec4<u32> }

struct StoredCodes { lo: vec4<u32>, hi: vec4<u32> }

fn w_stored(tile: u32, k8: u32) -> StoredCodes {
    let at = tile * (K8 * 2u) + k8 * 2u;
    return StoredCodes(weights[at], weights[at + 1u]);
}

fn w_codes(stored: StoredCodes, k8: u32) -> Codes8 {
    return Codes8(stored.lo ^ vec4<u32>(0x80808080u), stored.hi ^ vec4<u32>(0x80808080u));
}
