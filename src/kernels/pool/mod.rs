//! Runs independent chunks of work on threads. Callers see one type, whatever the platform has; how many threads
//! there are changes no result. Knows no kernel.

#[cfg(target_family = "wasm")]
mod single;
#[cfg(not(target_family = "wasm"))]
mod threads;

#[cfg(target_family = "wasm")]
pub use single::Pool;
#[cfg(not(target_family = "wasm"))]
pub use threads::Pool;
