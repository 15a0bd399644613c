// Matrix products with many tokens on packed bytes: activations from `quantize`, weights as their codes. A workgroup
// makes BM tokens by two halves of HALF rows, 8 tokens by 4 rows an invocation, from blocks of 32 columns staged in
// workgroup memory. Sums of 16 products are exact integers, the rest f32. Grid: (blocks of tokens,
// of rows, splits of the columns).
// Three words a token, as in memory.
var<workgroup> activations: array<vec4<u32>, BM * 3>;
// Three words a row: codes of columns 0..16 and 16..32, then scale and bias of either half.
var<workgroup> tiles: array<vec4<u32>, 2 * HALF * 3>;

// Four rows of a block: codes by halves, scales and biases of the first half and the second.
struct Rows4 {
    lo_0: vec4<u32>, lo_1: vec4<u32>, lo_2: vec4<u32>, lo_3: vec4<u32>,
    hi_0: vec4<u32>, hi_1: vec4<u32>, hi_2: vec4<u32>, hi_3: vec4<u32>,
    lo_scale: vec4<f32>, lo_bias: vec4<f32>, hi_scale: vec4<f32>, hi_bias: vec4<f32>,
}

fn stage_activations(first_token: u32, block: u32, local: u32) {
    for (var i = local; i < BM * 3u; i += WG) {
        activations[i] = x[(min(first_token + i / 3u, TOKENS - 1u) * (K8 / 4u) + block) * 3u + i % 3u];
    }
}

// Codes above 127 are made signed by flipping their highest bit, which lowers them by SHIFT.
fn stage_half(at: u32, half: u32, a: Weights8, b: Weights8, r: u32) {
    tiles[at + half] = vec4<u32>(a.lo[r], a.hi[r], b.lo[r], b.hi[r]) ^ vec4<u32>(FLIP);
    tiles[at + 2u][half * 2u] = bitcast<u32>(a.scale[r]);
    tiles[at + 2u][half * 2u + 1u] = bitcast<u32>(a.bias[r] + SHIFT * a.scale[r]);
}

fn stage_weights(rows: u32, block: u32, local: u32) {
    for (var i = local; i < HALF; i += WG) {
        let half = i % 2u;
        let tile = weight_tile(rows, i / 2u);
        let a = w_load(tile, block * 4u + half * 2u);
        let b = w_load(tile, block * 4u + half * 2u + 1u);
        let at = i / 2u * 12u;
        stage_half(at, half, a, b, 0u);
        stage_half(at + 3u, half, a, b, 1u);
        stage_half(at + 6u, half, a, b, 2u);
        stage_half(at + 9u, half, a, b, 3u);
    }
}

fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

fn rows4(row: u32) -> Rows4 {
    let a = row * 3u;
    let b = a + LANES * 3u;
    let c = a + HALF * 3u;
    let d = b + HALF * 3u;
    let scales = transpose(mat4x4<f32>(
        bitcast<vec4<f32>>(tiles[a + 2u]),
        bitcast<vec4<f32>>(tiles[b + 2u]),
        bitcast<vec4<f32>>(tiles[c + 2u]),
        bitcast<vec4<f32>>(tiles[d + 2u]),
    ));
    return Rows4(
        tiles[a], tiles[b], tiles[c], tiles[d],
        tiles[a + 1u], tiles[b + 1u], tiles[c + 1u], tiles[d + 1u],
        scales[0], scales[1], scales[2], scales[3],
    );
}

// The products of a staged token with four rows over the block.
fn products(token: u32, rows: Rows4) -> vec4<f32> {
    let lo = activations[token * 3u];
    let hi = activations[token * 3u + 1u];
    let word = activations[token * 3u + 2u];
    let sums = vec2<f32>(bitcast<vec2<i32>>(word.yz));
    let first = vec4<i32>(dot16(lo, rows.lo_0), dot16(lo, rows.lo_1), dot16(lo, rows.lo_2), dot16(lo, rows.lo_3));
    let second = vec4<i32>(dot16(hi, rows.hi_0), dot16(hi, rows.hi_1), dot16(hi, rows.hi_2), dot16(hi, rows.hi_3));
    if (HALVES_DIFFER) {
        let low = vec4<f32>(first) * rows.lo_scale + sums.x * rows.lo_bias;
        return bitcast<f32>(word.x) * (low + vec4<f32>(second) * rows.hi_scale + sums.y * rows.hi_bias);
    }
    return bitcast<f32>(word.x) * (vec4<f32>(first + second) * rows.lo_scale + (sums.x + sums.y) * rows.lo_bias);
}

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
    for (var block = columns.x / 4u; block < columns.y / 4u; block++) {
        stage_activations(first_token, block, local);
        stage_weights(wg.y, block, local);
        workgroupBarrier();
        let rows = rows4(row);
        sums.t0 += products(token, rows);
        sums.t1 += products(token + 1u, rows);
        sums.t2 += products(token + 2u, rows);
        sums.t3 += products(token + 3u, rows);
        sums.t4 += products(token + 4u, rows);
        sums.t5 += products(token + 5u, rows);
        sums.t6 += products(token + 6u, rows);
        sums.t7 += products(token + 7u, rows);
        workgroupBarrier();
    }
    put_sums(first_token + token, wg.y, row, sums);
}
