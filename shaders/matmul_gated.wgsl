// As `matmul` for two matrices of equal shape, the second TILES tiles after the first: silu(first) * second.
fn put(token: u32, tile: u32, gate: vec4<f32>, up: vec4<f32>) {
    if (token < TOKENS && tile < TILES) {
        store(token, tile, 0u, silu(gate.x + bias_of(tile, 0u)) * (up.x + bias_of(tile + TILES, 0u)));
        store(token, tile, 1u, silu(gate.y + bias_of(tile, 1u)) * (up.y + bias_of(tile + TILES, 1u)));
        store(token, tile, 2u, silu(gate.z + bias_of(tile, 2u)) * (up.z + bias_of(tile + TILES, 2u)));
        store(token, tile, 3u, silu(gate.w + bias_of(tile, 3u)) * (up.w + bias_of(tile + TILES, 3u)));
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
    var gate_0 = vec4<f32>(0.0);
    var gate_1 = vec4<f32>(0.0);
    var gate_2 = vec4<f32>(0.0);
    var gate_3 = vec4<f32>(0.0);
    var up_0 = vec4<f32>(0.0);
    var up_1 = vec4<f32>(0.0);
    var up_2 = vec4<f32>(0.0);
    var up_3 = vec4<f32>(0.0);
    for (var k0 = 0u; k0 < K8; k0 += STEP) {
        stage_activations(first_token, k0, local);
        stage_tiles(0u, first_tile, k0, local);
        stage_tiles(1u, first_tile, k0, local);
        workgroupBarrier();
        for (var k = 0u; k < STEP * 8u; k++) {
            let a = activations[k * (BM / 4u) + four];
            let gate = tiles[k * 16u + tile];
            let up = tiles[(STEP * 8u + k) * 16u + tile];
            gate_0 += a.x * gate;
            gate_1 += a.y * gate;
            gate_2 += a.z * gate;
            gate_3 += a.w * gate;
            up_0 += a.x * up;
            up_1 += a.y * up;
            up_2 += a.z * up;
            up_3 += a.w * up;
        }
        workgroupBarrier();
    }
    let token = first_token + four * 4u;
    put(token, first_tile + tile, gate_0, up_0);
    put(token + 1u, first_tile + tile, gate_1, up_1);
    put(token + 2u, first_tile + tile, gate_2, up_2);
    put(token + 3u, first_tile + tile, gate_3, up_3);
}
