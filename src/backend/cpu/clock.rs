//! Times per operation, while they are wanted.

use super::super::KernelTime;
use std::time::Instant;

/// Adds up the time of each operation. The platform's clock is read only while measuring: the plain WASM target has
/// none, so there it never measures.
#[derive(Debug, Default)]
pub(super) struct Clock {
    on: bool,
    times: Vec<KernelTime>,
}

impl Clock {
    /// Starts or stops measuring; answers the times since the last start.
    pub(super) fn switch(&mut self, on: bool) -> Vec<KernelTime> {
        self.on = on && !cfg!(target_family = "wasm");
        std::mem::take(&mut self.times)
    }

    /// The time, while measuring.
    pub(super) fn now(&self) -> Option<Instant> {
        self.on.then(Instant::now)
    }

    /// Adds the time since `start` and the bytes read to an operation's.
    pub(super) fn record(&mut self, op: &str, start: Instant, bytes: u64) {
        let us = start.elapsed().as_secs_f64() * 1e6;
        match self.times.iter_mut().find(|time| time.kernel == op) {
            Some(time) => {
                time.calls += 1;
                time.us += us;
                time.bytes += bytes;
            }
            None => self.times.push(KernelTime { kernel: op.to_owned(), calls: 1, us, bytes }),
        }
    }
}
