// Writing to a cache of floats, four elements a word.
// The workgroup writes the heads of `own_key` and `own_value`.
fn kv_put(row: u32, local: u32) {
    for (var i4 = local; i4 < HEAD_4; i4 += WG) {
        keys[row * HEAD_4 + i4] = own_key[i4];
        values[row * HEAD_4 + i4] = own_value[i4];
    }
}
