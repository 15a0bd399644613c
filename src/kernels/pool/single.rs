//! The pool of a platform without threads: every chunk runs on the caller.

use crate::error::Result;

/// Runs chunks of work one after the other.
#[derive(Debug)]
pub struct Pool(());

impl Pool {
    /// A pool; there is one thread whatever is asked for.
    pub fn new(_threads: usize) -> Result<Self> {
        Ok(Self(()))
    }

    /// Threads that work on a region, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        1
    }

    /// Calls `task` with each of `0..chunks`.
    pub fn run(&self, chunks: usize, task: &(dyn Fn(usize) + Sync)) -> Result<()> {
        (0..chunks).for_each(task);
        Ok(())
    }
}
