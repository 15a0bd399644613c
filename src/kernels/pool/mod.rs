//! Runs independent chunks of work on threads. Callers see one type, whatever the platform has; how many threads
//! there are changes no result. Knows no kernel.
//!
//! [`threads`] is the pool where there are threads, and `platform` what starts them: the system natively, JS on the web.

#[cfg(any(test, all(target_family = "wasm", target_feature = "atomics")))]
mod helpers;
#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
mod single;
#[cfg(not(all(target_family = "wasm", not(target_feature = "atomics"))))]
mod threads;

#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
use helpers as platform;
#[cfg(not(target_family = "wasm"))]
use native as platform;

#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
pub use helpers::{note_fault, release, serve};
#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
pub use single::Pool;
#[cfg(not(all(target_family = "wasm", not(target_feature = "atomics"))))]
pub use threads::Pool;
