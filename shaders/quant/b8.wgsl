// A byte plane of signed codes: 16 bytes are 4 columns. Flipping the sign bit makes code + 128, unsigned.
struct Codes8 { lo: vec4<u32>, hi: vec4<u32> }

fn w_codes(tile: u32, k8: u32) -> Codes8 {
    let at = tile * (K8 * 2u) + k8 * 2u;
    return Codes8(weights[at] ^ vec4<u32>(0x80808080u), weights[at + 1u] ^ vec4<u32>(0x80808080u));
}
