// A lane's tiles follow each other; the last one stands for those that do not exist.
fn tile_of(first: u32, j: u32) -> u32 {
    return min(first + j, TILES - 1u);
}

fn finish(first: u32, local: u32, lane: u32) {
    let scale = norm_scale(local);
    for (var i = lane; i < SPAN * 4u; i += LANES) {
        let tile = first + i / 4u;
        if (tile < TILES) {
            store(0u, tile, i % 4u, reduced(local, i / 4u, i % 4u) * scale + bias_of(tile, i % 4u));
        }
    }
}
