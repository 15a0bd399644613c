//! Threads of the system, for the pool.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How long a worker spins before it parks.
const SPIN: Duration = Duration::from_micros(100);

/// A thread at work.
pub(super) struct Worker(JoinHandle<()>);

impl Worker {
    /// Waits for its end.
    pub(super) fn join(self) {
        // A worker catches the panics of its tasks, so there is no result to look at.
        let _ = self.0.join();
    }
}

/// Starts a thread.
///
/// # Errors
/// `Internal` when the system refuses.
pub(super) fn start(index: usize, work: impl FnOnce() + Send + 'static) -> Result<Worker> {
    std::thread::Builder::new()
        .name(format!("edge-{index}"))
        .spawn(work)
        .map(Worker)
        .map_err(|error| Error::internal("a worker thread could not be started").because(error))
}

/// Spins for a bounded time; answers whether `is_over` came true.
pub(super) fn spin_until(is_over: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < SPIN {
        for _ in 0..64 {
            if is_over() {
                return true;
            }
            std::hint::spin_loop();
        }
    }
    false
}

/// Called now and then while the others are waited for, with the looks so far.
pub(super) fn breathe(_looks: u32) {
    std::thread::yield_now();
}
