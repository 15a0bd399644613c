// A 2-bit plane: 16 bytes are 16 columns, byte j holds columns j, 4 + j, 8 + j, 12 + j from the lowest bits up.
struct Codes8 { lo: vec4<u32>, hi: vec4<u32> }
alias StoredCodes = vec4<u32>;

fn w_stored(tile: u32, k8: u32) -> StoredCodes {
    return weights[tile * (K8 / 2u) + k8 / 2u];
}

fn w_codes(stored: StoredCodes, k8: u32) -> Codes8 {
    let p = stored >> vec4<u32>((k8 % 2u) * 4u);
    return Codes8(p & vec4<u32>(0x03030303u), (p >> vec4<u32>(2u)) & vec4<u32>(0x03030303u));
}
