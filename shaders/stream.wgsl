// Reads a buffer once, as fast as the memory gives it. Nothing is written unless the data is what it never is.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    var all = vec4<u32>(0u);
    for (var i = wg.x * WG + local; i < COUNT; i += GROUPS * WG) {
        all ^= data[i];
    }
    if (all.x == 0x9e3779b9u && all.y == 0x7f4a7c15u && all.z == 0x94d049bbu && all.w == 0x133111ebu) {
        kept[0] = vec2<u32>(all.x, local);
    }
}
