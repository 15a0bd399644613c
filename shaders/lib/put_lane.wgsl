// An invocation without matrix units makes row `row` and the one LANES later, of the first half and of the second.
const LANES: u32 = HALF / 2u;

fn put_lane(token: u32, block: u32, row: u32, sum: vec4<f32>) {
    put(token, block, row, sum.x, sum.z);
    put(token, block, row + LANES, sum.y, sum.w);
}
