// Matrix products with many tokens. A workgroup makes BM tokens by 64 rows, 4 by 4 an invocation, from blocks of
// 8 * STEP columns staged in workgroup memory. f32 throughout.
fn put(token: u32, tile: u32, sum: vec4<f32>) {
    if (token < TOKENS && tile < TILES) {
        store(token, tile, 0u, sum.x + bias_of(tile, 0u));
        store(token, tile, 1u, sum.y + bias_of(tile, 1u));
        store(token, tile, 2u, sum.z + bias_of(tile, 2u));
        store(token, tile, 3u, sum.w + bias_of(tile, 3u));
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first_token = wg.y * BM;
    let first_tile = wg.x * 16u;
    if (first_token >= state.tokens) {
        return;
    }
    let four = local / 16u;
    let tile = local % 16u;
    var sum_0 = vec4<f32>(0.0);
    var sum_1 = vec4<f32>(0.0);
    var sum_2 = vec4<f32>(0.0);
    var sum_3 = vec4<f32>(0.0);
    for (var k0 = 0u; k0 < K8; k0 += STEP) {
        stage_activations(first_token, k0, local);
        stage_tiles(0u, first_tile, k0, local);
        workgroupBarrier();
        for (var k = 0u; k < STEP * 8u; k++) {
            let a = activations[k * (BM / 4u) + four];
            let b = tiles[k * 16u + tile];
            sum_0 += a.x * b;
            sum_1 += a.y * b;
            sum_2 += a.z * b;
            sum_3 += a.w * b;
        }
        workgroupBarrier();
    }
    let token = first_token + four * 4u;
    put(token, first_tile + tile, sum_0);
    put(token + 1u, first_tile + tile, sum_1);
    put(token + 2u, first_tile + tile, sum_2);
    put(token + 3u, first_tile + tile, sum_3);
}
