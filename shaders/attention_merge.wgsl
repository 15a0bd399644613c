// Puts the splits of one token's attention together: a workgroup a query head. SLICES groups of invocations each take
// every SLICES-th split; what they need is asked for at once.
const MOST: u32 = (SPLITS + SLICES - 1u) / SLICES;

var<workgroup> maxima: array<f32, SPLITS>;
var<workgroup> factors: array<f32, SPLITS>;
var<workgroup> denominators: array<f32, SPLITS>;
var<workgroup> partial: array<vec4<f32>, SLICES * HEAD_4>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first = first_visible(state.position);
    let count = min(state.position + 1u, CAPACITY) - first;
    let share = keys_per_split(count);
    let used = min((count + share - 1u) / share, SPLITS);
    let head = wg.x;
    let i4 = local % HEAD_4;
    let slice = local / HEAD_4;
    var own: array<vec4<f32>, MOST>;
    for (var n = 0u; n < MOST; n++) {
        let split = slice + n * SLICES;
        if (slice < SLICES && split < used) {
            own[n] = splits[(split * HEADS + head) * (HEAD_4 + 1u) + i4];
        }
    }
    for (var split = local; split < used; split += WG) {
        let stats = splits[(split * HEADS + head) * (HEAD_4 + 1u) + HEAD_4];
        maxima[split] = stats.x;
        denominators[split] = stats.y;
    }
    workgroupBarrier();
    for (var split = local; split < used; split += WG) {
        var maximum = maxima[0];
        for (var other = 1u; other < used; other++) {
            maximum = max(maximum, maxima[other]);
        }
        factors[split] = exp(maxima[split] - maximum);
    }
    workgroupBarrier();
    var sum = vec4<f32>(0.0);
    for (var n = 0u; n < MOST; n++) {
        let split = slice + n * SLICES;
        if (slice < SLICES && split < used) {
            sum += own[n] * factors[split];
        }
    }
    if (slice < SLICES) {
        partial[slice * HEAD_4 + i4] = sum;
    }
    workgroupBarrier();
    if (local < HEAD_4) {
        var total = vec4<f32>(0.0);
        for (var other = 0u; other < SLICES; other++) {
            total += partial[other * HEAD_4 + local];
        }
        var denominator = 0.0;
        for (var split = 0u; split < used; split++) {
            denominator += denominators[split] * factors[split];
        }
        dst[head * HEAD_4 + local] = total / max(denominator, 1e-30);
    }
}
