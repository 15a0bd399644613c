//! The border to JavaScript. Only here are `wasm_bindgen` and `js_sys`; across it go numbers, strings (JSON where a value
//! has parts), typed arrays, and errors as `{ code, message, path }`. JS pulls: nothing here calls back, fetches or waits.

mod embedding;
mod engine;
mod error;
mod hash;
mod loader;
mod options;
mod panic;
mod shaders;
mod slot;
#[cfg(target_feature = "atomics")]
mod threads;

pub use embedding::Embedding;
pub use engine::{Engine, Generation};
pub use hash::Sha256;
pub use loader::Loader;
pub use panic::{last_panic, start};
pub use shaders::kernel_sources;
#[cfg(target_feature = "atomics")]
pub use threads::{note_thread_fault, release_threads, run_thread};

use crate::engine::Clock;
use wasm_bindgen::prelude::wasm_bindgen;

/// The model registry as JSON.
#[wasm_bindgen]
#[must_use]
pub fn registry() -> String {
    crate::registry::TABLE.to_owned()
}

/// The platform's clock.
fn clock() -> Clock {
    let offset = -js_sys::Date::new_0().get_timezone_offset();
    Clock { now_ms: js_sys::Date::now, utc_offset_minutes: offset as i32 }
}

/// What JS calls a backend: the one name that differs is that of the GPU's.
fn name_for_js(backend: &str) -> &str {
    if backend == "wgpu" { "webgpu" } else { backend }
}
