// A nibble plane: word r of 16 bytes is row r; low nibbles are columns 0..4, high ones 4..8.
struct Codes8 { lo: vec4<u32>, hi: vec4<u32> }

alias StoredCodes = vec4<u32>;

fn w_stored(tile: u32, k8: u32) -> StoredCodes {
    return weights[tile * K8 + k8];
}

fn w_codes(stored: StoredCodes, k8: u32) -> Codes8 {
    return Codes8(stored & vec4<u32>(0x0f0f0f0fu), (stored >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
}
