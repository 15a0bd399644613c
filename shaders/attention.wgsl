// Attention with an online softmax over blocks of keys (Milakov and Gimelshein, 2018; Dao et al., 2022).
// A workgroup takes ROWS queries that share a key/value head: row r is head `r % GROUP` of the group at token
// `r / GROUP`, so that grouped heads read each key and value once. Grid: (row blocks, key/value heads, splits).
// With SPLITS > 1 each split leaves its sums, maxima and denominators for `attention_merge`.
const HIDDEN_SCORE: f32 = -1e30;

var<workgroup> queries: array<vec4<f32>, ROWS * HEAD_4>;
var<workgroup> weights: array<f32, ROWS * BLOCK>;
var<workgroup> partials: array<f32, WG>;
var<workgroup> factors: array<f32, ROWS>;

fn query_element(base: u32, i: u32, scale: f32, position: u32) -> f32 {
    let j = partner(i);
    let own = q[base + i] * scale * q_weight(i);
    let other = q[base + j] * scale * q_weight(j);
    return turned(i, own, other, position);
}

// Where row r's query starts in q.
fn query_base(kv_head: u32, row: u32) -> u32 {
    return ((row / GROUP) * HEADS + kv_head * GROUP + row % GROUP) * HEAD_DIM;
}

// Fills `queries`: normalized, turned and scaled; rows that do not exist repeat the last one.
fn load_queries(kv_head: u32, first_row: u32, last_row: u32, local: u32) {
    for (var at = local; at < ROWS * HEAD_4; at += WG) {
        let row = min(first_row + at / HEAD_4, last_row);
        let base = query_base(kv_head, row);
        let position = state.position + row / GROUP;
        var scale = 1.0;
        if (HEAD_NORM) {
            var sum = 0.0;
            for (var i = 0u; i < HEAD_DIM; i++) {
                sum += q[base + i] * q[base + i];
            }
            scale = 1.0 / sqrt(sum / f32(HEAD_DIM) + NORM_EPS);
        }
        let i = (at % HEAD_4) * 4u;
        queries[at] = SCALE * vec4<f32>(
            query_element(base, i, scale, position),
            query_element(base, i + 1u, scale, position),
            query_element(base, i + 2u, scale, position),
            query_element(base, i + 3u, scale, position),
        );
    }
}

// Scores of the block's keys against every row, into `weights`.
fn score_block(kv_head: u32, block: u32, stop: u32, first_row: u32, local: u32) {
    for (var j = local; j < BLOCK; j += WG) {
        let key = block + j;
        let at = (kv_head * CAPACITY + min(key, stop - 1u)) * HEAD_4;
        var scores: array<f32, ROWS>;
        for (var i = 0u; i < HEAD_4; i++) {
            let x = kv_unpack(keys[at + i]);
            for (var r = 0u; r < ROWS; r++) {
                scores[r] += dot(queries[r * HEAD_4 + i], x);
            }
        }
        for (var r = 0u; r < ROWS; r++) {
            let position = state.position + (first_row + r) / GROUP;
            let seen = key < stop && key <= position && key >= first_visible(position);
            weights[r * BLOCK + j] = select(HIDDEN_SCORE, scores[r], seen);
        }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first_row = wg.x * ROWS;
    let n_rows = state.tokens * GROUP;
    if (first_row >= n_rows) {
        return;
    }
    let last_row = min(first_row + ROWS, n_rows) - 1u;
    let kv_head = wg.y;
    let first = first_visible(state.position + first_row / GROUP);
    let end = min(state.position + last_row / GROUP + 1u, CAPACITY);
    let share = keys_per_split(end - first);
    let start = first + wg.z * share;
    let stop = min(start + share, end);
    if (start >= stop) {
        return;
    }
    load_queries(kv_head, first_row, last_row, local);

    // LANES_A_ROW invocations share a row's softmax; all of them hold its maximum and denominator.
    let row = min(local / LANES_A_ROW, ROWS - 1u);
    let lane = local % LANES_A_ROW;
    let idle = local >= ROWS * LANES_A_ROW;
    var maximum = HIDDEN_SCORE;
    var denominator = 0.0;
    // Four elements of the head and every LANES-th row belong to an invocation in the second product.
    let i4 = local % HEAD_4;
    let row_lane = local / HEAD_4;
    var sums: array<vec4<f32>, ROWS_A_LANE>;
    workgroupBarrier();

    for (var block = start; block < stop; block += BLOCK) {
        score_block(kv_head, block, stop, first_row, local);
        workgroupBarrier();
        var top = HIDDEN_SCORE;
        for (var j = lane; j < BLOCK; j += LANES_A_ROW) {
            top = max(top, weights[row * BLOCK + j]);
        }
        partials[local] = top;
        workgroupBarrier();
        for (var j = 0u; j < LANES_A_ROW; j++) {
            top = max(top, partials[row * LANES_A_ROW + j]);
        }
        top = max(top, maximum);
        let factor = exp(maximum - top);
        maximum = top;
        workgroupBarrier();
        var sum = 0.0;
        if (!idle) {
            for (var j = lane; j < BLOCK; j += LANES_A_ROW) {
                let score = weights[row * BLOCK + j];
                let weight = select(0.0, exp(score - top), score > HIDDEN_SCORE * 0.5);
                weights[row * BLOCK + j] = weight;
                sum += weight;
            }
            factors[row] = factor;
        }
        partials[local] = sum;
        workgroupBarrier();
        denominator *= factor;
        for (var j = 0u; j < LANES_A_ROW; j++) {
            denominator += partials[row * LANES_A_ROW + j];
        }
        if (row_lane < ROW_LANES) {
            let count = min(BLOCK, stop - block);
            for (var r = 0u; r < ROWS_A_LANE; r++) {
                sums[r] *= factors[min(row_lane + r * ROW_LANES, ROWS - 1u)];
            }
            let at = (kv_head * CAPACITY + block) * HEAD_4 + i4;
            for (var j = 0u; j < count; j++) {
                let x = kv_unpack(values[at + j * HEAD_4]);
                for (var r = 0u; r < ROWS_A_LANE; r++) {
                    sums[r] += weights[min(row_lane + r * ROW_LANES, ROWS - 1u) * BLOCK + j] * x;
                }
            }
        }
        workgroupBarrier();
    }

    if (!idle && lane == 0u) {
        factors[row] = denominator;
        partials[row] = maximum;
    }
    workgroupBarrier();
    if (row_lane >= ROW_LANES) {
        return;
    }
    for (var r = 0u; r < ROWS_A_LANE; r++) {
        let own = row_lane + r * ROW_LANES;
        if (own >= ROWS || first_row + own > last_row) {
            continue;
        }
        let share_of = factors[own];
        if (SPLITS == 1u) {
            dst[query_base(kv_head, first_row + own) / 4u + i4] = sums[r] / max(share_of, 1e-30);
        } else {
            let at = (wg.z * HEADS + kv_head * GROUP + first_row + own) * (HEAD_4 + 1u);
            dst[at + i4] = sums[r];
            if (i4 == 0u) {
                dst[at + HEAD_4] = vec4<f32>(partials[own], share_of, 0.0, 0.0);
            }
        }
    }
}
