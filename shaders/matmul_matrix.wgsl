// Matrix products with many tokens on matrix units: f16 products, f32 sums. A workgroup makes BM tokens by two halves
// of HALF rows from blocks of columns staged in workgroup memory; a subgroup of 32 takes 64 tokens by 16 rows of each
// half. Grid: (blocks of tokens, of rows).
alias Tokens16 = coop_mat16x16<f16, A>;
alias Rows16 = coop_mat16x16<f16, B>;
alias Sums16 = coop_mat16x16<f32, C>;

// Two blocks of 16 tokens by 16 rows for each subgroup on the way to `put`.
var<workgroup> corner: array<f32, WG * 16>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first_token = wg.x * BM;
    if (first_token >= state.tokens) {
        return;
    }
    let subgroup = local / 32u;
    let lane = local % 32u;
    let token = subgroup % (BM / 64u) * 64u;
    let row = subgroup / (BM / 64u) * 16u;
    // Four blocks of tokens, each with the first half's rows and the second's.
    var sums: array<Sums16, 8>;
    for (var k0 = 0u; k0 < K8; k0 += STEP) {
        stage_activations(first_token, k0, local);
        stage_weights(wg.y, k0, local);
        workgroupBarrier();
        for (var k4 = 0u; k4 < STEP * 2u; k4 += 4u) {
            let first = coopLoad<Rows16>(&tiles[row * STRIDE + k4], STRIDE);
            let second = coopLoad<Rows16>(&tiles[(HALF + row) * STRIDE + k4], STRIDE);
            for (var i = 0u; i < 4u; i++) {
                let x = coopLoadT<Tokens16>(&activations[(token + i * 16u) * STRIDE + k4], STRIDE);
                sums[2u * i] = coopMultiplyAdd(x, first, sums[2u * i]);
                sums[2u * i + 1u] = coopMultiplyAdd(x, second, sums[2u * i + 1u]);
            }
        }
        workgroupBarrier();
    }
    let own = subgroup * 512u;
    for (var i = 0u; i < 4u; i++) {
        coopStoreT(sums[2u * i], &corner[own], 16u);
        coopStoreT(sums[2u * i + 1u], &corner[own + 256u], 16u);
        workgroupBarrier();
        for (var at = lane; at < 256u; at += 32u) {
            let first = corner[own + at];
            let second = corner[own + 256u + at];
            put(first_token + token + i * 16u + at / 16u, wg.y, row + at % 16u, first, second);
        }
        workgroupBarrier();
    }
}
