// Sums over the LANES invocations that share tiles, by halves: the upper half hands over, the lower half adds.
// A slot is read only by the lane that writes it next, so that one barrier a step is enough.
const HALF: u32 = max(LANES / 2u, 1u);
const SLOTS: u32 = WG / LANES * HALF;

var<workgroup> partial: array<vec4<f32>, SUMS * SLOTS>;
var<workgroup> partial_squares: array<f32, SLOTS>;

// Leaves the sums in slot 0 of each group of lanes. Uniform control flow is required.
fn reduce(local: u32, lane: u32) {
    let base = (local / LANES) * HALF;
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if (lane >= stride && lane < 2u * stride) {
            let slot = base + lane % HALF;
            for (var j = 0u; j < SUMS; j++) {
                partial[j * SLOTS + slot] = sums[j];
            }
            partial_squares[slot] = squares;
        }
        workgroupBarrier();
        if (lane < stride) {
            let slot = base + (lane + stride) % HALF;
            for (var j = 0u; j < SUMS; j++) {
                sums[j] += partial[j * SLOTS + slot];
            }
            squares += partial_squares[slot];
        }
    }
    if (lane == 0u) {
        for (var j = 0u; j < SUMS; j++) {
            partial[j * SLOTS + base] = sums[j];
        }
        partial_squares[base] = squares;
    }
    workgroupBarrier();
}

// What the norm's mean of squares makes of the sums.
fn norm_scale(local: u32) -> f32 {
    if (!NORM) {
        return 1.0;
    }
    var sum = partial_squares[(local / LANES) * HALF];
    if (SQUARE_GROUPS > 1u) {
        sum = 0.0;
        for (var group = 0u; group < SQUARE_GROUPS; group++) {
            sum += partial_squares[group * HALF];
        }
    }
    return 1.0 / sqrt(sum / f32(K) + EPS);
}

// Row r of sum j.
fn reduced(local: u32, j: u32, r: u32) -> f32 {
    return partial[j * SLOTS + (local / LANES) * HALF][r];
}
