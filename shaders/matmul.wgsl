// Matrix products with many tokens. A workgroup makes BM tokens by two halves of HALF rows, 8 tokens by 4 rows an
// invocation, from blocks of columns staged in workgroup memory. Sums are f32. Grid: (blocks of tokens, of rows, splits
// of the columns).
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first_token = wg.x * BM;
    if (first_token >= state.tokens) {
        return;
    }
    let row = local % LANES;
    let token = local / LANES * 8u;
    // Lanes: this row and the one LANES later, of the first half and of the second.
    var sum_0 = vec4<f32>(0.0);
    var sum_1 = vec4<f32>(0.0);
    var sum_2 = vec4<f32>(0.0);
    var sum_3 = vec4<f32>(0.0);
    var sum_4 = vec4<f32>(0.0);
    var sum_5 = vec4<f32>(0.0);
    var sum_6 = vec4<f32>(0.0);
    var sum_7 = vec4<f32>(0.0);
    let columns = split_of(wg.z);
    for (var k0 = columns.x; k0 < columns.y; k0 += STEP) {
        for (var i = local; i < BM * STEP * 2u; i += WG) {
            stage_quad(i, x_quad(first_token, k0, i));
        }
        for (var i = local; i < HALF / 2u * STEP; i += WG) {
            stage_step(i, w_step(wg.y, k0, i));
        }
        workgroupBarrier();
        for (var k4 = 0u; k4 < STEP * 2u; k4++) {
            let b = row * STRIDE + k4;
            let rows = mat4x4<f32>(
                wide(tiles[b]),
                wide(tiles[b + LANES * STRIDE]),
                wide(tiles[b + HALF * STRIDE]),
                wide(tiles[b + (HALF + LANES) * STRIDE]),
            );
            let a = token * STRIDE + k4;
            sum_0 += wide(activations[a]) * rows;
            sum_1 += wide(activations[a + STRIDE]) * rows;
            sum_2 += wide(activations[a + 2u * STRIDE]) * rows;
            sum_3 += wide(activations[a + 3u * STRIDE]) * rows;
            sum_4 += wide(activations[a + 4u * STRIDE]) * rows;
            sum_5 += wide(activations[a + 5u * STRIDE]) * rows;
            sum_6 += wide(activations[a + 6u * STRIDE]) * rows;
            sum_7 += wide(activations[a + 7u * STRIDE]) * rows;
        }
        workgroupBarrier();
    }
    put_lane(first_token + token, wg.y, row, sum_0);
    put_lane(first_token + token + 1u, wg.y, row, sum_1);
    put_lane(first_token + token + 2u, wg.y, row, sum_2);
    put_lane(first_token + token + 3u, wg.y, row, sum_3);
    put_lane(first_token + token + 4u, wg.y, row, sum_4);
    put_lane(first_token + token + 5u, wg.y, row, sum_5);
    put_lane(first_token + token + 6u, wg.y, row, sum_6);
    put_lane(first_token + token + 7u, wg.y, row, sum_7);
}
