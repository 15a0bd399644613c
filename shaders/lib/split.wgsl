// The columns of the workgroup's split, in steps of 8: the first, and the one after the last.
var<private> split: u32;

fn split_of(z: u32) -> vec2<u32> {
    split = z;
    return vec2<u32>(z * SPLIT_8, min((z + 1u) * SPLIT_8, K8));
}
