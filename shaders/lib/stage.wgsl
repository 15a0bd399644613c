// Blocks of 8 * STEP columns in workgroup memory, transposed for the product: `activations[k][4 tokens]`,
// `tiles[matrix][k][4 rows]`.
var<workgroup> activations: array<vec4<f32>, STEP * 8 * BM / 4>;
var<workgroup> tiles: array<vec4<f32>, MATRICES * STEP * 8 * 16>;

fn stage_activations(first_token: u32, k0: u32, local: u32) {
    for (var i = local; i < STEP * BM / 4u; i += WG) {
        let step = i % STEP;
        let four = i / STEP;
        let t = first_token + four * 4u;
        let last = TOKENS - 1u;
        let k4 = (k0 + step) * 2u;
        let lo = transpose(mat4x4<f32>(
            x4(min(t, last), k4),
            x4(min(t + 1u, last), k4),
            x4(min(t + 2u, last), k4),
            x4(min(t + 3u, last), k4),
        ));
        let hi = transpose(mat4x4<f32>(
            x4(min(t, last), k4 + 1u),
            x4(min(t + 1u, last), k4 + 1u),
            x4(min(t + 2u, last), k4 + 1u),
            x4(min(t + 3u, last), k4 + 1u),
        ));
        let at = step * 8u * (BM / 4u) + four;
        activations[at] = lo[0];
        activations[at + BM / 4u] = lo[1];
        activations[at + 2u * (BM / 4u)] = lo[2];
        activations[at + 3u * (BM / 4u)] = lo[3];
        activations[at + 4u * (BM / 4u)] = hi[0];
        activations[at + 5u * (BM / 4u)] = hi[1];
        activations[at + 6u * (BM / 4u)] = hi[2];
        activations[at + 7u * (BM / 4u)] = hi[3];
    }
}

// Tiles of matrix number `matrix`, which lies `matrix * TILES` tiles after the first.
fn stage_tiles(matrix: u32, first_tile: u32, k0: u32, local: u32) {
    for (var i = local; i < STEP * 16u; i += WG) {
        let step = i % STEP;
        let tile = i / STEP;
        let block = w_block(w_load(TILE_0 + matrix * TILES + min(first_tile + tile, TILES - 1u), k0 + step));
        let at = (matrix * STEP + step) * 128u + tile;
        tiles[at] = block.lo[0];
        tiles[at + 16u] = block.lo[1];
        tiles[at + 32u] = block.lo[2];
        tiles[at + 48u] = block.lo[3];
        tiles[at + 64u] = block.hi[0];
        tiles[at + 80u] = block.hi[1];
        tiles[at + 96u] = block.hi[2];
        tiles[at + 112u] = block.hi[3];
    }
}
