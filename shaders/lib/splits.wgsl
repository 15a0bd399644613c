// First key that a query at `position` sees.
fn first_visible(position: u32) -> u32 {
    return select(0u, position + 1u - WINDOW, position + 1u > WINDOW);
}

// Keys that each of SPLITS workgroups takes of `count`: whole blocks, so that few keys occupy few workgroups.
fn keys_per_split(count: u32) -> u32 {
    let share = (count + SPLITS - 1u) / SPLITS;
    return max((share + BLOCK - 1u) / BLOCK, 1u) * BLOCK;
}
