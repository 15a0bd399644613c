// Makes `id` the token of the next step and notes it for the host, in a ring of DRAWN.
fn take(id: u32) {
    tokens[0] = id;
    drawn[state.drawn % DRAWN] = id;
    state.drawn += 1u;
    state.counter += 1u;
    state.position = state.next;
    state.next += 1u;
    state.tokens = 1u;
}
