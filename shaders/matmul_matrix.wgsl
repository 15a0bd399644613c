// Matrix products with many tokens on matrix units: f16 products, f32 sums. A workgroup makes BM = 64 tokens by two
// halves of HALF rows from blocks of columns staged in workgroup memory; a subgroup of 32 takes all tokens by 16 rows
// of each half. Each invocation stages one step of weights a block. Grid: (blocks of tokens, of rows,
// splits of the columns).
alias Tokens16 = coop_mat16x16<f16, A>;
alias Rows16 = coop_mat16x16<f16, B>;
alias Sums16 = coop_mat16x16<f32, C>;

// 16 tokens by 16 rows of each half for each subgroup, on the way to `put`.
var<workgroup> corners: array<f32, WG * 16>;

// Puts what the subgroups have stored: 16 tokens from `token` on, and 16 rows from `row` on.
fn put_corner(at: u32, lane: u32, token: u32, block: u32, row: u32) {
    workgroupBarrier();
    for (var i = lane; i < 256u; i += 32u) {
        put(token + i / 16u, block, row + i % 16u, corners[at + i], corners[at + 256u + i]);
    }
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let token = wg.x * BM;
    if (token >= state.tokens) {
        return;
    }
    let row = local / 32u * 16u;
    let lane = local % 32u;
    // Four blocks of 16 tokens, by the first half's rows and the second's. Neither an array nor a loop: drivers keep
    // named matrices in registers.
    var first_0: Sums16;
    var first_1: Sums16;
    var first_2: Sums16;
    var first_3: Sums16;
    var second_0: Sums16;
    var second_1: Sums16;
    var second_2: Sums16;
    var second_3: Sums16;
    var next_x: array<vec4<f32>, QUADS>;
    let columns = split_of(wg.z);
    // unroll
    for (var i = 0u; i < QUADS; i++) {
        next_x[i] = x_quad(token, columns.x, local + i * WG);
    }
    var next_w = w_step(wg.y, columns.x, local);
    for (var k0 = columns.x; k0 < columns.y; k0 += STEP) {
        // unroll
        for (var i = 0u; i < QUADS; i++) {
            stage_quad(local + i * WG, next_x[i]);
        }
        stage_step(local, next_w);
        workgroupBarrier();
        // The next block is on its way while this one is multiplied.
        let next = min(k0 + STEP, K8 - STEP);
        // unroll
        for (var i = 0u; i < QUADS; i++) {
            next_x[i] = x_quad(token, next, local + i * WG);
        }
        next_w = w_step(wg.y, next, local);
        for (var k4 = 0u; k4 < STEP * 2u; k4 += 4u) {
            let first = coopLoad<Rows16>(&tiles[row * STRIDE + k4], STRIDE);
            let second = coopLoad<Rows16>(&tiles[(HALF + row) * STRIDE + k4], STRIDE);
            let x_0 = coopLoadT<Tokens16>(&activations[k4], STRIDE);
            first_0 = coopMultiplyAdd(x_0, first, first_0);
            second_0 = coopMultiplyAdd(x_0, second, second_0);
            let x_1 = coopLoadT<Tokens16>(&activations[16u * STRIDE + k4], STRIDE);
            first_1 = coopMultiplyAdd(x_1, first, first_1);
            second_1 = coopMultiplyAdd(x_1, second, second_1);
            let x_2 = coopLoadT<Tokens16>(&activations[32u * STRIDE + k4], STRIDE);
            first_2 = coopMultiplyAdd(x_2, first, first_2);
            second_2 = coopMultiplyAdd(x_2, second, second_2);
            let x_3 = coopLoadT<Tokens16>(&activations[48u * STRIDE + k4], STRIDE);
            first_3 = coopMultiplyAdd(x_3, first, first_3);
            second_3 = coopMultiplyAdd(x_3, second, second_3);
        }
        workgroupBarrier();
    }
    let at = row * 32u;
    coopStoreT(first_0, &corners[at], 16u);
    coopStoreT(second_0, &corners[at + 256u], 16u);
    put_corner(at, lane, token, wg.y, row);
    coopStoreT(first_1, &corners[at], 16u);
    coopStoreT(second_1, &corners[at + 256u], 16u);
    put_corner(at, lane, token + 16u, wg.y, row);
    coopStoreT(first_2, &corners[at], 16u);
    coopStoreT(second_2, &corners[at + 256u], 16u);
    put_corner(at, lane, token + 32u, wg.y, row);
    coopStoreT(first_3, &corners[at], 16u);
    coopStoreT(second_3, &corners[at + 256u], 16u);
    put_corner(at, lane, token + 48u, wg.y, row);
}
