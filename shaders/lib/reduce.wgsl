// Sums over the LANES invocations that share a tile.
var<workgroup> partial: array<vec4<f32>, WG>;
var<workgroup> partial_squares: array<f32, WG>;

struct Sums { products: vec4<f32>, squares: f32 }

fn reduce(local: u32, lane: u32, products: vec4<f32>, squares: f32) -> Sums {
    partial[local] = products;
    if (NORM) {
        partial_squares[local] = squares;
    }
    workgroupBarrier();
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if (lane < stride) {
            partial[local] += partial[local + stride];
            if (NORM) {
                partial_squares[local] += partial_squares[local + stride];
            }
        }
        workgroupBarrier();
    }
    let first = local - lane;
    let total = Sums(partial[first], partial_squares[first]);
    workgroupBarrier();
    return total;
}
