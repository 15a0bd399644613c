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
    var sums: Sums8;
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
            sums.t0 += wide(activations[a]) * rows;
            sums.t1 += wide(activations[a + STRIDE]) * rows;
            sums.t2 += wide(activations[a + 2u * STRIDE]) * rows;
            sums.t3 += wide(activations[a + 3u * STRIDE]) * rows;
            sums.t4 += wide(activations[a + 4u * STRIDE]) * rows;
            sums.t5 += wide(activations[a + 5u * STRIDE]) * rows;
            sums.t6 += wide(activations[a + 6u * STRIDE]) * rows;
            sums.t7 += wide(activations[a + 7u * STRIDE]) * rows;
        }
        workgroupBarrier();
    }
    put_sums(first_token + token, wg.y, row, sums);
}
