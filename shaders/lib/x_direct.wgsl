// Every lane turns the activations of its steps into bytes.
const SQUARE_GROUPS: u32 = 1u;

fn stage(local: u32) {
}

fn x_bytes(k8: u32) -> Bytes8 {
    return bytes_of(k8);
}
