// The step's state: one small buffer that the host writes, and that on the device only a draw changes.
struct State {
    // Position of the step's first token.
    position: u32,
    // Tokens of the step; the plan has room for more.
    tokens: u32,
    // Tokens drawn since the host wrote the state.
    drawn: u32,
    // Number of the next draw.
    counter: u32,
    seed: u32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    temperature: f32,
    // Position of the next token to be drawn.
    next: u32,
    reserved_0: u32,
    reserved_1: u32,
}
