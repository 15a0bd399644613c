// The activations are bytes already, of `quantize_row`.
const SQUARE_GROUPS: u32 = 1u;

fn stage(local: u32) {
}

fn x_bytes(k8: u32) -> Bytes8 {
    return unpacked(x[k8]);
}
