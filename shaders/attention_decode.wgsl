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
// Fours of the queries' heads and the key's.
const HEADS_4: u32 = (ROWS + 1u) * HEAD_4;

var<workgroup> queries: array<vec4<f32>, ROWS * HEAD_4>;
var<workgroup> own_key: array<vec4<f32>, HEAD_4>;
var<workgroup> own_value: array<vec4<f32>, HEAD_4>;
// In turn: the heads before norm and rotation, parts of scores, parts of sums.
var<workgroup> scratch: array<f32, SCRATCH>;
var<workgroup> weights: array<f32, ROWS * BLOCK>;
var<workgroup> squares: array<f32, HEADS_4>;
var<workgroup> eighths: array<f32, ROWS * 8u>;
var<workgroup> factors: array<f32, ROWS>;
var<workgroup> denominators: array<f32, SLICES * ROWS>;

var<private> key_data: array<Kv8, KEY_STEPS>;
var<private> value_data: array<Kv8, VALUE_STEPS>;
// Turns of an invocation's four elements of a head, and the value's elements there.
var<private> turns_01: array<vec4<f32>, HEAD_STEPS>;
var<private> turns_23: array<vec4<f32>, HEAD_STEPS>;
var<private> new_values: array<vec4<f32>, HEAD_STEPS>;
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
            key_data[i] = key8(kv_head * CAPACITY + key, chunk);
        }
    }
}

fn load_values(kv_head: u32, block: u32, stop: u32, local: u32) {
    let slice = min(local / CHUNKS, SLICES - 1u);
    // unroll
    for (var j = 0u; j < VALUE_STEPS; j++) {
        let key = block + slice * VALUE_STEPS + j;
        if (key < min(stop, state.position)) {
            value_data[j] = value8(kv_head * CAPACITY + key, local % CHUNKS);
        }
    }
}

// Asks for what `prepare` needs of the step's heads and puts it, times the norms' weights, into scratch: the queries'
// rows (beyond the group its last head), then the key.
fn load_heads(kv_head: u32, first_row: u32, local: u32) {
    // unroll
    for (var n = 0u; n < HEAD_STEPS; n++) {
        let at = min(n * WG + local, HEADS_4 - 1u);
        let i = (at % HEAD_4) * 4u;
        var x = k[kv_head * HEAD_4 + at % HEAD_4];
        var weight = vec4<f32>(k_weight(i), k_weight(i + 1u), k_weight(i + 2u), k_weight(i + 3u));
        if (at < ROWS * HEAD_4) {
            let head = kv_head * GROUP + min(first_row + at / HEAD_4, GROUP - 1u);
            x = q[head * HEAD_4 + at % HEAD_4];
            weight = vec4<f32>(q_weight(i), q_weight(i + 1u), q_weight(i + 2u), q_weight(i + 3u));
        }
        turns_01[n] = vec4<f32>(turn_of(state.position, pair_of(i)), turn_of(state.position, pair_of(i + 1u)));
        turns_23[n] = vec4<f32>(turn_of(state.position, pair_of(i + 2u)), turn_of(state.position, pair_of(i + 3u)));
        new_values[n] = v[kv_head * HEAD_4 + at % HEAD_4];
        if (n * WG + local < HEADS_4) {
            squares[at] = dot(x, x);
            scratch[at * 4u] = x.x * weight.x;
            scratch[at * 4u + 1u] = x.y * weight.y;
            scratch[at * 4u + 2u] = x.z * weight.z;
            scratch[at * 4u + 3u] = x.w * weight.w;
        }
    }
}

// Element i of the head at `base` in scratch, scaled and turned.
fn prepared(base: u32, i: u32, scale: f32, turn: vec2<f32>) -> f32 {
    return turned_by(i, scratch[base + i] * scale, scratch[base + partner(i)] * scale, turn);
}

// Fills `queries`, `own_key` and `own_value` from scratch. The split that the step's own key belongs to writes it to
// the cache.
fn prepare(kv_head: u32, owner: bool, local: u32) {
    workgroupBarrier();
    // unroll
    for (var n = 0u; n < HEAD_STEPS; n++) {
        let at = n * WG + local;
        if (at < HEADS_4) {
            let row = at / HEAD_4;
            let i = (at % HEAD_4) * 4u;
            var scale = 1.0;
            if (HEAD_NORM) {
                var sum = 0.0;
                for (var j = 0u; j < HEAD_4; j++) {
                    sum += squares[row * HEAD_4 + j];
                }
                scale = 1.0 / sqrt(sum / f32(HEAD_DIM) + NORM_EPS);
            }
            let x = vec4<f32>(
                prepared(row * HEAD_DIM, i, scale, turns_01[n].xy),
                prepared(row * HEAD_DIM, i + 1u, scale, turns_01[n].zw),
                prepared(row * HEAD_DIM, i + 2u, scale, turns_23[n].xy),
                prepared(row * HEAD_DIM, i + 3u, scale, turns_23[n].zw),
            );
            if (row < ROWS) {
                queries[at] = x * SCALE;
            } else {
                own_key[at - ROWS * HEAD_4] = x;
                own_value[at - ROWS * HEAD_4] = new_values[n];
            }
        }
    }
    workgroupBarrier();
    if (owner) {
        kv_put(kv_head * CAPACITY + min(state.position, CAPACITY - 1u), local);
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
    // unroll
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
    load_heads(kv_head, first_row, local);
    prepare(kv_head, stop == end && first_row == 0u, local);
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
