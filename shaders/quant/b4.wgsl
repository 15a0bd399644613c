// A nibble plane: word r of 16 bytes is row r; low nibbles are columns 0..4, high ones 4..8.
struct Codes8 { lo: vec4<u32>, hi: vec4<u32> }

fn w_codes(tile: u32, k8: u32) -> Codes8 {
    let p = weights[tile * K8 + k8];
    return Codes8(p & vec4<u32>(0x0f0f0f0fu), (p >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
}
