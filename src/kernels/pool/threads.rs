//! The pool of threads. A region costs one atomic store and, only when workers sleep, one wake: between regions
//! workers spin for a bounded time, which covers the gaps inside a token, and then park.
//!
//! One word holds the state: the number of the region, whether workers may still join, and how many have. The caller
//! works too; when no chunk is left it closes the region, so that a worker that wakes late joins nothing and the
//! caller never waits for one that has not joined.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::platform;
use crate::error::{Error, Result};

/// Workers may join the region.
const OPEN: u64 = 1 << 31;
/// Workers inside the region.
const ACTIVE: u64 = OPEN - 1;
/// One region.
const EPOCH: u64 = 1 << 32;
/// More threads than this are not started.
const MAX_THREADS: usize = 256;

type Task<'a> = dyn Fn(usize) + Sync + 'a;

/// The work of a region. The pointer is valid while the region is open or has active workers.
struct Job {
    task: Option<*const Task<'static>>,
    chunks: usize,
}

struct Shared {
    state: AtomicU64,
    next: AtomicUsize,
    /// Written only by the owner of the gate, while no region is open and nobody active.
    job: UnsafeCell<Job>,
    panicked: AtomicBool,
    stop: AtomicBool,
    asleep: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
}

// SAFETY: `job` is written before the release store that opens a region and read after the acquire that joins it;
// the task it points to is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Shared {}

/// Threads that share chunks of work.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<platform::Worker>,
    /// Held by the caller of the region that is running.
    gate: Mutex<()>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish()
    }
}

impl Pool {
    /// A pool of `threads` threads, the caller being one: with 1 none is started.
    ///
    /// # Errors
    /// `InvalidArgument` for 0 or absurdly many, `Internal` when the system refuses to start one.
    pub fn new(threads: usize) -> Result<Self> {
        if threads == 0 || threads > MAX_THREADS {
            return Err(Error::invalid_argument(format!("expected 1 to {MAX_THREADS} threads, found {threads}")));
        }
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            job: UnsafeCell::new(Job { task: None, chunks: 0 }),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        });
        let mut pool = Self { shared, workers: Vec::new(), gate: Mutex::new(()) };
        for index in 1..threads {
            let shared = Arc::clone(&pool.shared);
            pool.workers.push(platform::start(index, move || work(&shared))?);
        }
        Ok(pool)
    }

    /// Threads that work on a region, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task` with each of `0..chunks`, in any order and on any thread, and returns when all are done.
    /// A region inside a region, or beside one of another thread, runs on its caller alone.
    ///
    /// # Errors
    /// `Internal` when a chunk panicked; the others may or may not have run.
    pub fn run(&self, chunks: usize, task: &Task<'_>) -> Result<()> {
        let gate = if self.workers.is_empty() || chunks < 2 { None } else { self.gate.try_lock().ok() };
        let done = match gate {
            None => catch_unwind(AssertUnwindSafe(|| (0..chunks).for_each(task))).is_ok(),
            Some(_gate) => self.run_shared(chunks, task),
        };
        if done { Ok(()) } else { Err(Error::internal("a CPU kernel panicked")) }
    }

    /// Runs a region; the caller holds the gate.
    fn run_shared(&self, chunks: usize, task: &Task<'_>) -> bool {
        let shared = &*self.shared;
        let epoch = shared.state.load(Ordering::Relaxed) & !(EPOCH - 1);
        // SAFETY: the gate is held, no region is open and nobody is active, so nobody reads the job. The pointer's
        // lifetime is erased; nobody follows it after this function returns, because it waits for the active.
        unsafe {
            let task = std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task);
            *shared.job.get() = Job { task: Some(task), chunks };
        }
        shared.panicked.store(false, Ordering::Relaxed);
        shared.next.store(0, Ordering::Relaxed);
        // Sequentially consistent with `asleep`: a worker that missed this store is seen asleep and woken.
        shared.state.store(epoch.wrapping_add(EPOCH) | OPEN, Ordering::SeqCst);
        if shared.asleep.load(Ordering::SeqCst) > 0 {
            drop(shared.sleep.lock().unwrap_or_else(PoisonError::into_inner));
            shared.wake.notify_all();
        }
        shared.take_chunks(task, chunks);
        let mut state = shared.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0u32;
        while state & ACTIVE != 0 {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1024) {
                platform::breathe(spins);
            }
            std::hint::spin_loop();
            state = shared.state.load(Ordering::Acquire);
        }
        !shared.panicked.load(Ordering::Relaxed)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(self.shared.sleep.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.wake.notify_all();
        self.workers.drain(..).for_each(platform::Worker::join);
    }
}

impl Shared {
    /// Runs chunks until none is left.
    fn take_chunks(&self, task: &Task<'_>, chunks: usize) {
        let run = || {
            loop {
                let chunk = self.next.fetch_add(1, Ordering::Relaxed);
                if chunk >= chunks {
                    return;
                }
                task(chunk);
            }
        };
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            self.panicked.store(true, Ordering::Relaxed);
            self.next.store(chunks, Ordering::Relaxed);
        }
    }

    /// Joins the open region, unless it closes first.
    fn join(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & OPEN != 0 {
            match self.state.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => state = found,
            }
        }
        false
    }

    /// Whether there is something new for a worker that last saw region `seen`.
    fn has_news(&self, seen: u64) -> bool {
        self.state.load(Ordering::SeqCst) / EPOCH != seen || self.stop.load(Ordering::SeqCst)
    }

    /// Waits for a region after `seen`: spins, then parks.
    fn wait(&self, seen: u64) {
        if platform::spin_until(|| self.has_news(seen)) {
            return;
        }
        let mut guard = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while !self.has_news(seen) {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The life of a worker.
fn work(shared: &Shared) {
    let mut seen = 0;
    while !shared.stop.load(Ordering::SeqCst) {
        shared.wait(seen);
        seen = shared.state.load(Ordering::SeqCst) / EPOCH;
        if !shared.join() {
            continue;
        }
        // SAFETY: this worker is active, so the job is not written, and its task outlives the region.
        let (task, chunks) = unsafe {
            let job = &*shared.job.get();
            (job.task.map(|task| &*task), job.chunks)
        };
        if let Some(task) = task {
            shared.take_chunks(task, chunks);
        }
        shared.state.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::{AtomicUsize, Ordering, Pool};

    #[test]
    fn every_chunk_runs_once_in_every_region() {
        for threads in [1, 2, 3, 5] {
            let pool = Pool::new(threads).unwrap();
            for region in 0..300 {
                let chunks = region % 17;
                let counts: Vec<_> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(chunks, &|chunk| {
                    counts[chunk].fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{threads} threads");
                if region % 100 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            }
        }
    }

    #[test]
    fn a_panic_is_an_error_and_the_pool_lives_on() {
        let pool = Pool::new(3).unwrap();
        for _ in 0..20 {
            let result = pool.run(8, &|chunk| assert!(chunk != 5, "on purpose"));
            assert_eq!(result.unwrap_err().code(), "internal");
            let sum = AtomicUsize::new(0);
            pool.run(8, &|chunk| {
                sum.fetch_add(chunk, Ordering::Relaxed);
            })
            .unwrap();
            assert_eq!(sum.into_inner(), 28);
        }
    }

    #[test]
    fn a_region_inside_a_region_runs_on_its_caller() {
        let pool = Pool::new(2).unwrap();
        let count = AtomicUsize::new(0);
        pool.run(4, &|_| {
            pool.run(4, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        })
        .unwrap();
        assert_eq!(count.into_inner(), 16);
    }

    #[test]
    fn no_threads_are_refused() {
        assert_eq!(Pool::new(0).unwrap_err().code(), "invalid-argument");
        assert_eq!(Pool::new(100_000).unwrap_err().code(), "invalid-argument");
    }
}
