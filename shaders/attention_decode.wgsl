// Attention of one token with an online softmax over blocks of keys (Milakov and Gimelshein, 2018; Dao et al., 2022).
// A workgroup takes ROWS query heads of a key/value head, so that they read each key and value once.
// Grid: (row blocks, key/value heads, splits of the keys). With SPLITS > 1 each split leaves its sums, its maximum and
// its denominator for `attention_merge`. What a block needs of the cache is asked for before it is used: at this size
// the time is that of waiting for memory.
const HIDDEN_SCORE: f32 = -1e30;
// 8 elements of a head are a chunk; KEY_LANES invocations share a key's chunks. SCORES of a block's scores are turned
// into weights by an invocation.
// In the second product an invocation has a chunk of the VALUE_STEPS keys of a slice of the block.
// A row of products is padded so that the lanes of a key use different banks of memory.
const DOTS: u32 = BLOCK + 32u / KEY_LANES;

var<workgroup> queries: array<vec4<f32>, ROWS * HEAD_4>;
var<workgroup> own_key: array<vec4<f32>, HEAD_4>;
var<workgroup> own_value: array<vec4<f32>, HEAD_4>;
// In turn: the heads before norm and rotation, parts of scores, parts of sums.
var<workgroup> scratch: array<f32, SCRATCH>;
var<workgroup> weights: array<f32, ROWS * BLOCK>;
var<workgroup> eighths: array<f32, (ROWS + 1u) * 8u>;
var<workgroup> factors: array<f32, ROWS>;
var<workgroup> denominators: array<f32, SLICES * ROWS>;

var<private> key_data: array<Kv8, KEY_STEPS>;
var<private> value_data: array<Kv8, VALUE_STEPS>;
// The maxima of the rows whose scores an invocation weighs.
var<private> maxima: array<f32, SCORES>;
// Sums of a row's weighted values and of its weights.
var<private> sums_lo: array<vec4<f32>, ROWS>;
var<private> sums_hi: array<vec4<f32>, ROWS>;
var<private> weight_sums: array<f32, ROWS>;

fn load_keys(kv_head: u32, block: u32, stop: u32, local: u32) {
    let key = block + local / KEY_LANES;
    // The step's own key is not in the cache yet.
    if (key < min(stop, state.position)) {
        // unroll
        for (var i = 0u; i < KEY_STEPS; i++) {
            let chunk = min(i * KEY_LANES + local % KEY_LANES, CHUNKS - 1u);
            key_data[i] = keys[(kv_head * CAPACITY + key) * CHUNKS + chunk];
        }
    }
}

fn load_values(kv_head: u32, block: u32, stop: u32, local: u32) {
    let slice = min(local / CHUNKS, SLICES - 1u);
    // unroll
    for (var j = 0u; j < VALUE_STEPS; j++) {
        let key = block + slice * VALUE_STEPS + j;
        if (key < min(stop, state.position)) {
            value_data[j] = values[(kv_head * CAPACITY + key) * CHUNKS + local % CHUNKS];
        }
    }
}

// Element i of head `row` in scratch, normalized by `scale` and turned; the row after the queries is the key.
fn prepared(row: u32, i: u32, scale: f32) -> f32 {
    let j = partner(i);
    let own = scratch[row * HEAD_DIM + i] * scale;
    let other = scratch[row * HEAD_DIM + j] * scale;
    if (row == ROWS) {
        return turned(i, own * k_weight(i), other * k_weight(j), state.position);
    }
    return turned(i, own * q_weight(i), other * q_weight(j), state.position);
}

// Fills `queries`, and where the step's own key belongs to this split `own_key` and `own_value`, which it writes to the
// cache. Rows beyond the group repeat its last head.
fn prepare(kv_head: u32, first_row: u32, owner: bool, local: u32) {
    for (var at = local; at < ROWS * HEAD_DIM; at += WG) {
        let head = kv_head * GROUP + min(first_row + at / HEAD_DIM, GROUP - 1u);
        scratch[at] = q[head * HEAD_DIM + at % HEAD_DIM];
    }
    for (var at = local; at < HEAD_DIM; at += WG) {
        scratch[ROWS * HEAD_DIM + at] = k[kv_head * HEAD_DIM + at];
    }
    workgroupBarrier();
    if (HEAD_NORM) {
        for (var part = local; part < (ROWS + 1u) * 8u; part += WG) {
            var sum = 0.0;
            for (var i = part % 8u; i < HEAD_DIM; i += 8u) {
                let value = scratch[(part / 8u) * HEAD_DIM + i];
                sum += value * value;
            }
            eighths[part] = sum;
        }
        workgroupBarrier();
    }
    for (var at = local; at < (ROWS + 1u) * HEAD_4; at += WG) {
        let row = at / HEAD_4;
        let i = (at % HEAD_4) * 4u;
        var scale = 1.0;
        if (HEAD_NORM) {
            var sum = 0.0;
            // unroll
            for (var part = 0u; part < 8u; part++) {
                sum += eighths[row * 8u + part];
            }
            scale = 1.0 / sqrt(sum / f32(HEAD_DIM) + NORM_EPS);
        }
        let x = vec4<f32>(
            prepared(row, i, scale),
            prepared(row, i + 1u, scale),
            prepared(row, i + 2u, scale),
            prepared(row, i + 3u, scale),
        );
        if (row < ROWS) {
            queries[at] = x * SCALE;
        } else {
            let start = kv_head * HEAD_DIM + i;
            own_key[at - ROWS * HEAD_4] = x;
            own_value[at - ROWS * HEAD_4] = vec4<f32>(v[start], v[start + 1u], v[start + 2u], v[start + 3u]);
        }
    }
    workgroupBarrier();
    if (owner && first_row == 0u) {
        for (var chunk = local; chunk < CHUNKS; chunk += WG) {
            let at = (kv_head * CAPACITY + min(state.position, CAPACITY - 1u)) * CHUNKS + chunk;
            keys[at] = kv8_pack(own_key[chunk * 2u], own_key[chunk * 2u + 1u]);
            values[at] = kv8_pack(own_value[chunk * 2u], own_value[chunk * 2u + 1u]);
        }
    }
}

// A lane's part of its key's products with every row, into scratch.
fn score(block: u32, local: u32) {
    let lane = local % KEY_LANES;
    let own = block + local / KEY_LANES == state.position;
    var dots: array<f32, ROWS>;
    // unroll
    for (var i = 0u; i < KEY_STEPS; i++) {
        let chunk = i * KEY_LANES + lane;
        if (chunk < CHUNKS) {
            var lo = kv8_lo(key_data[i]);
            var hi = kv8_hi(key_data[i]);
            if (own) {
                lo = own_key[chunk * 2u];
                hi = own_key[chunk * 2u + 1u];
            }
            // unroll
            for (var r = 0u; r < ROWS; r++) {
                let at = r * HEAD_4 + chunk * 2u;
                dots[r] += dot(queries[at], lo) + dot(queries[at + 1u], hi);
            }
        }
    }
    // unroll
    for (var r = 0u; r < ROWS; r++) {
        scratch[(r * KEY_LANES + lane) * DOTS + local / KEY_LANES] = dots[r];
    }
}

// Makes weights of the block's products, and factors for what was summed before.
fn weigh(block: u32, stop: u32, local: u32) {
    for (var at = local; at < ROWS * BLOCK; at += WG) {
        let row = at / BLOCK;
        var sum = 0.0;
        // unroll
        for (var lane = 0u; lane < KEY_LANES; lane++) {
            sum += scratch[(row * KEY_LANES + lane) * DOTS + at % BLOCK];
        }
        weights[at] = select(HIDDEN_SCORE, sum, block + at % BLOCK < stop);
    }
    workgroupBarrier();
    for (var part = local; part < ROWS * 8u; part += WG) {
        var top = HIDDEN_SCORE;
        for (var j = part % 8u; j < BLOCK; j += 8u) {
            top = max(top, weights[(part / 8u) * BLOCK + j]);
        }
        eighths[part] = top;
    }
    workgroupBarrier();
    // unroll
    for (var n = 0u; n < SCORES; n++) {
        let at = n * WG + local;
        if (at < ROWS * BLOCK) {
            let row = at / BLOCK;
            var top = maxima[n];
            // unroll
            for (var part = 0u; part < 8u; part++) {
                top = max(top, eighths[row * 8u + part]);
            }
            let own = weights[at];
            weights[at] = select(0.0, exp(own - top), own > HIDDEN_SCORE * 0.5);
            if (at % BLOCK == 0u) {
                factors[row] = exp(maxima[n] - top);
            }
            maxima[n] = top;
        }
    }
    workgroupBarrier();
}

// Adds the block's values by their weights.
fn accumulate(block: u32, stop: u32, local: u32) {
    let slice = local / CHUNKS;
    let chunk = local % CHUNKS;
    if (slice >= SLICES) {
        return;
    }
    // unroll
    for (var r = 0u; r < ROWS; r++) {
        sums_lo[r] *= factors[r];
        sums_hi[r] *= factors[r];
        weight_sums[r] *= factors[r];
    }
    // unroll
    for (var j = 0u; j < VALUE_STEPS; j++) {
        let key = slice * VALUE_STEPS + j;
        if (block + key < stop) {
            var lo = kv8_lo(value_data[j]);
            var hi = kv8_hi(value_data[j]);
            if (block + key == state.position) {
                lo = own_value[chunk * 2u];
                hi = own_value[chunk * 2u + 1u];
            }
            // unroll
            for (var r = 0u; r < ROWS; r++) {
                let weight = weights[r * BLOCK + key];
                sums_lo[r] += weight * lo;
                sums_hi[r] += weight * hi;
                weight_sums[r] += weight;
            }
        }
    }
}

// Writes the rows' sums over the slices.
fn finish(kv_head: u32, first_row: u32, split: u32, local: u32) {
    let slice = local / CHUNKS;
    let chunk = local % CHUNKS;
    if (slice < SLICES && chunk == 0u) {
        // unroll
        for (var r = 0u; r < ROWS; r++) {
            denominators[slice * ROWS + r] = weight_sums[r];
        }
    }
    // unroll
    for (var n = 0u; n < SCORES; n++) {
        let at = n * WG + local;
        if (at < ROWS * BLOCK && at % BLOCK == 0u) {
            factors[at / BLOCK] = maxima[n];
        }
    }
    // unroll
    for (var batch = 0u; batch < BATCHES; batch++) {
        workgroupBarrier();
        if (slice < SLICES) {
            // unroll
            for (var n = 0u; n < BATCH_ROWS; n++) {
                let r = min(batch * BATCH_ROWS + n, ROWS - 1u);
                let at = (n * SLICES + slice) * HEAD_DIM + chunk;
                // unroll
                for (var e = 0u; e < 4u; e++) {
                    scratch[at + e * CHUNKS] = sums_lo[r][e];
                    scratch[at + (e + 4u) * CHUNKS] = sums_hi[r][e];
                }
            }
        }
        workgroupBarrier();
        for (var at = local; at < BATCH_ROWS * HEAD_4; at += WG) {
            let r = batch * BATCH_ROWS + at / HEAD_4;
            if (r < ROWS && first_row + r < GROUP) {
                put(kv_head * GROUP + first_row + r, r, at, split);
            }
        }
    }
}

// Writes four elements of a row's sums over the slices, from place `at` of a batch.
fn put(head: u32, r: u32, at: u32, split: u32) {
    let i4 = at % HEAD_4;
    var denominator = 0.0;
    var sum = vec4<f32>(0.0);
    for (var slice = 0u; slice < SLICES; slice++) {
        denominator += denominators[slice * ROWS + r];
        let start = ((at / HEAD_4) * SLICES + slice) * HEAD_DIM + (i4 % 2u) * 4u * CHUNKS + i4 / 2u;
        sum += vec4<f32>(
            scratch[start],
            scratch[start + CHUNKS],
            scratch[start + 2u * CHUNKS],
            scratch[start + 3u * CHUNKS],
        );
    }
    if (SPLITS == 1u) {
        dst[head * HEAD_4 + i4] = sum / max(denominator, 1e-30);
        return;
    }
    let row = (split * HEADS + head) * (HEAD_4 + 1u);
    dst[row + i4] = sum;
    if (i4 == 0u) {
        dst[row + HEAD_4] = vec4<f32>(factors[r], denominator, 0.0, 0.0);
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first_row = wg.x * ROWS;
    let kv_head = wg.y;
    let first = first_visible(state.position);
    let end = min(state.position + 1u, CAPACITY);
    let share = keys_per_split(end - first);
    let start = first + wg.z * share;
    let stop = min(start + share, end);
    if (start >= stop) {
        return;
    }
    load_keys(kv_head, start, stop, local);
    load_values(kv_head, start, stop, local);
    prepare(kv_head, first_row, stop == end, local);
    // unroll
    for (var n = 0u; n < SCORES; n++) {
        maxima[n] = HIDDEN_SCORE;
    }
    for (var block = start; block < stop; block += BLOCK) {
        score(block, local);
        load_keys(kv_head, block + BLOCK, stop, local);
        workgroupBarrier();
        weigh(block, stop, local);
        accumulate(block, stop, local);
        load_values(kv_head, block + BLOCK, stop, local);
    }
    finish(kv_head, first_row, wg.z, local);
}
