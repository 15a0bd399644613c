//! What is left of a panic, which stops a module: its message.

use std::sync::Mutex;
use wasm_bindgen::prelude::wasm_bindgen;

/// The first panic, which may be another thread's: others only follow from it.
static FIRST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs when the module is instantiated: a panic stops it, and leaves its message for [`last_panic`].
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.to_string();
        if let Ok(mut first) = FIRST_PANIC.try_lock() {
            first.get_or_insert(message);
        }
    }));
}

/// The message of the panic that stopped the module; `undefined` when none did.
#[wasm_bindgen(js_name = lastPanic)]
#[must_use]
pub fn last_panic() -> Option<String> {
    FIRST_PANIC.try_lock().ok().and_then(|message| message.clone())
}
