// Sums of 8 tokens by four rows: this row and the one LANES later, of the first half and of the second. Members, not an
// array: drivers keep them in registers.
struct Sums8 {
    t0: vec4<f32>, t1: vec4<f32>, t2: vec4<f32>, t3: vec4<f32>,
    t4: vec4<f32>, t5: vec4<f32>, t6: vec4<f32>, t7: vec4<f32>,
}

fn put_sums(token: u32, block: u32, row: u32, sums: Sums8) {
    put_lane(token, block, row, sums.t0);
    put_lane(token + 1u, block, row, sums.t1);
    put_lane(token + 2u, block, row, sums.t2);
    put_lane(token + 3u, block, row, sums.t3);
    put_lane(token + 4u, block, row, sums.t4);
    put_lane(token + 5u, block, row, sums.t5);
    put_lane(token + 6u, block, row, sums.t6);
    put_lane(token + 7u, block, row, sums.t7);
}
