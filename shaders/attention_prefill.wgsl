// Attention of many tokens with an online softmax (Milakov and Gimelshein, 2018; Dao et al., 2022). A workgroup takes
// ROWS queries that share a key/value head, 32 keys at a time: row r is head `r % GROUP` of the group at token
// `r / GROUP`, so that grouped heads read each key and value once. Grid: (row blocks, the last first; key/value heads).
const HIDDEN_SCORE: f32 = -1e30;
const KEYS: u32 = 32u;
const CHUNK: u32 = 8u;
// Quads from one row to the next, so that neighbouring rows begin in different banks.
const STRIDE: u32 = 9u;

// First CHUNK quads of the ROWS queries and then of the keys; once these are scored, each row's softmax weights:
// quad t holds keys t, 8 + t, 16 + t and 24 + t.
var<workgroup> quads: array<vec4<f32>, (ROWS + KEYS) * STRIDE>;
var<workgroup> partials: array<f32, WG>;
var<workgroup> factors: array<f32, ROWS>;

// Where row r's query starts in q and dst, in quads.
fn query_at(kv_head: u32, row: u32) -> u32 {
    return ((row / GROUP) * HEADS + kv_head * GROUP + row % GROUP) * HEAD_4;
}

fn stage(kv_head: u32, chunk: u32, rows: vec2<u32>, keys_at: vec2<u32>, local: u32) {
    for (var i = local; i < (ROWS + KEYS) * CHUNK; i += WG) {
        let at = i / CHUNK;
        let quad = chunk + i % CHUNK;
        var value = vec4<f32>(0.0);
        if (quad < HEAD_4) {
            if (at < ROWS) {
                value = q[query_at(kv_head, min(rows.x + at, rows.y)) + quad];
            } else {
                let key = min(keys_at.x + at - ROWS, keys_at.y);
                value = key4(kv_head * CAPACITY + key, quad);
            }
        }
        quads[at * STRIDE + i % CHUNK] = value;
    }
}

fn hide(scores: vec4<f32>, key: u32, stop: u32, row: u32) -> vec4<f32> {
    let position = state.position + row / GROUP;
    let own = vec4<u32>(key, key + 8u, key + 16u, key + 24u);
    let end = vec4<u32>(min(position + 1u, stop));
    let seen = (own < end) & (own >= vec4<u32>(first_visible(position)));
    return select(vec4<f32>(HIDDEN_SCORE), scores, seen);
}

fn weigh(scores: vec4<f32>, top: f32) -> vec4<f32> {
    return select(vec4<f32>(0.0), exp(scores - top), scores > vec4<f32>(HIDDEN_SCORE * 0.5));
}

fn largest(x: vec4<f32>) -> f32 {
    return max(max(x.x, x.y), max(x.z, x.w));
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first_row = (grid.x - 1u - wg.x) * ROWS;
    let n_rows = state.tokens * GROUP;
    if (first_row >= n_rows) {
        return;
    }
    let last_row = min(first_row + ROWS, n_rows) - 1u;
    let kv_head = wg.y;
    let start = first_visible(state.position + first_row / GROUP);
    let stop = min(state.position + last_row / GROUP + 1u, CAPACITY);

    // Scores: rows `pair` and ROWS / 2 later by the four keys of quad `t`.
    let t = local % 8u;
    let pair = local / 8u;
    // The softmax: four lanes a row, each with two quads and a part of the denominator.
    let row = local / 4u;
    let quad = row * STRIDE + local % 4u;
    var maximum = HIDDEN_SCORE;
    var denominator = 0.0;
    // Values: quad `i4` of the head for every GROUPS-th row from `group` on.
    let i4 = local % HEAD_4;
    let group = local / HEAD_4;
    var sums: array<vec4<f32>, ROWS_A_LANE>;

    for (var block = start; block < stop; block += KEYS) {
        var score_0 = vec4<f32>(0.0);
        var score_1 = vec4<f32>(0.0);
        for (var chunk = 0u; chunk < HEAD_4; chunk += CHUNK) {
            stage(kv_head, chunk, vec2<u32>(first_row, last_row), vec2<u32>(block, stop - 1u), local);
            workgroupBarrier();
            for (var i = 0u; i < CHUNK; i++) {
                let at = (ROWS + t) * STRIDE + i;
                let four = mat4x4<f32>(
                    quads[at],
                    quads[at + 8u * STRIDE],
                    quads[at + 16u * STRIDE],
                    quads[at + 24u * STRIDE],
                );
                score_0 += quads[pair * STRIDE + i] * four;
                score_1 += quads[(pair + ROWS / 2u) * STRIDE + i] * four;
            }
            workgroupBarrier();
        }
        quads[pair * STRIDE + t] = hide(score_0, block + t, stop, first_row + pair);
        quads[(pair + ROWS / 2u) * STRIDE + t] = hide(score_1, block + t, stop, first_row + pair + ROWS / 2u);
        workgroupBarrier();
        let low = quads[quad];
        let high = quads[quad + 4u];
        partials[local] = max(largest(low), largest(high));
        workgroupBarrier();
        let lanes = row * 4u;
        let top = max(
            max(max(partials[lanes], partials[lanes + 1u]), max(partials[lanes + 2u], partials[lanes + 3u])),
            maximum,
        );
        let factor = exp(maximum - top);
        maximum = top;
        let low_weight = weigh(low, top);
        let high_weight = weigh(high, top);
        quads[quad] = low_weight;
        quads[quad + 4u] = high_weight;
        denominator = denominator * factor + dot(low_weight + high_weight, vec4<f32>(1.0));
        factors[row] = factor;
        workgroupBarrier();
        if (group < GROUPS) {
            // unroll
            for (var r = 0u; r < ROWS_A_LANE; r++) {
                sums[r] *= factors[min(group + r * GROUPS, ROWS - 1u)];
            }
            let at = kv_head * CAPACITY;
            for (var j = 0u; j < 8u; j++) {
                let key = block + j;
                let value_0 = value4(at + min(key, stop - 1u), i4);
                let value_1 = value4(at + min(key + 8u, stop - 1u), i4);
                let value_2 = value4(at + min(key + 16u, stop - 1u), i4);
                let value_3 = value4(at + min(key + 24u, stop - 1u), i4);
                // unroll
                for (var r = 0u; r < ROWS_A_LANE; r++) {
                    let weight = quads[min(group + r * GROUPS, ROWS - 1u) * STRIDE + j];
                    sums[r] += weight.x * value_0 + weight.y * value_1 + weight.z * value_2 + weight.w * value_3;
                }
            }
        }
        workgroupBarrier();
    }

    partials[local] = denominator;
    workgroupBarrier();
    if (group >= GROUPS) {
        return;
    }
    // unroll
    for (var r = 0u; r < ROWS_A_LANE; r++) {
        let own = group + r * GROUPS;
        if (own < ROWS && first_row + own <= last_row) {
            let lanes = own * 4u;
            let sum = partials[lanes] + partials[lanes + 1u] + partials[lanes + 2u] + partials[lanes + 3u];
            dst[query_at(kv_head, first_row + own) + i4] = sums[r] / max(sum, 1e-30);
        }
    }
}
