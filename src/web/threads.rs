//! What the threads that JS starts call. Each has an instance of the module of its own on the shared memory.

use crate::kernels;
use wasm_bindgen::prelude::wasm_bindgen;

/// Works for the engines of this memory; returns when the thread may go. Blocks, so never to be called in a page.
#[wasm_bindgen(js_name = runThread)]
pub fn run_thread() {
    kernels::serve();
}

/// Lets that many threads go, as soon as they are free.
#[wasm_bindgen(js_name = releaseThreads)]
pub fn release_threads(count: usize) {
    kernels::release(count);
}

/// Says that the calling thread stopped in a trap, so that nobody waits for its part of the work.
#[wasm_bindgen(js_name = noteThreadFault)]
pub fn note_thread_fault() {
    kernels::note_fault();
}
