//! Threads that JS lends, for the pool: WebAssembly cannot start any. Each calls [`serve`], which takes work from one
//! queue for all pools until it is told to leave. Fewer helpers than were asked for make a pool slower, never wrong.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::error::Result;

/// Looks that a worker takes before it parks: some 50 to 100 µs. There is no clock here.
const SPINS: u32 = 1 << 15;

enum Job {
    Work(Box<dyn FnOnce() + Send>),
    Leave,
}

static JOBS: Mutex<VecDeque<Job>> = Mutex::new(VecDeque::new());
static WAKE: Condvar = Condvar::new();
/// Whether a helper stopped in the middle of its work.
static FAULT: AtomicBool = AtomicBool::new(false);

/// Work that was given to a helper.
pub(super) struct Worker;

impl Worker {
    /// Does not wait: the helper goes back to the queue by itself, and what it works on is kept alive by it.
    pub(super) fn join(self) {}
}

/// Gives work to the next helper that is free.
#[allow(clippy::unnecessary_wraps, reason = "the system's threads can fail")]
pub(super) fn start(_index: usize, work: impl FnOnce() + Send + 'static) -> Result<Worker> {
    push(Job::Work(Box::new(work)));
    Ok(Worker)
}

/// Spins for a bounded time; answers whether `is_over` came true.
pub(super) fn spin_until(is_over: impl Fn() -> bool) -> bool {
    (0..SPINS).any(|_| is_over())
}

/// Called now and then while the others are waited for, with the looks so far. After long it sleeps, since another
/// program may have the processor of whoever is late. Long is more than a chunk takes: a sleep of 50 µs takes 150, and the
/// others park meanwhile. A helper that stopped would be waited for for ever.
#[allow(clippy::panic, reason = "the module's memory is in no known state after a trap")]
pub(super) fn breathe(looks: u32) {
    if FAULT.load(Ordering::Relaxed) {
        panic!("a thread stopped in the middle of its work");
    }
    if looks > 8 * SPINS {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// The life of a helper; returns when it may go.
pub fn serve() {
    loop {
        let mut jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
        let job = loop {
            match jobs.pop_front() {
                Some(job) => break job,
                None => jobs = WAKE.wait(jobs).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(jobs);
        match job {
            Job::Work(work) => work(),
            Job::Leave => return,
        }
    }
}

/// Lets that many helpers go, as soon as they are free.
pub fn release(count: usize) {
    for _ in 0..count {
        push(Job::Leave);
    }
}

/// Says that a helper stopped in the middle of its work.
pub fn note_fault() {
    FAULT.store(true, Ordering::Relaxed);
}

fn push(job: Job) {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner).push_back(job);
    WAKE.notify_one();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{breathe, note_fault, release, serve, spin_until, start};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    #[test]
    fn helpers_take_work_from_the_queue_until_they_are_released() {
        let helpers: Vec<_> = (0..2).map(|_| std::thread::spawn(serve)).collect();
        let (sender, receiver) = channel();
        for index in 0..5 {
            let sender = sender.clone();
            start(index, move || sender.send(index).unwrap()).unwrap().join();
        }
        let mut done: Vec<usize> = (0..5).map(|_| receiver.recv().unwrap()).collect();
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2, 3, 4]);
        release(2);
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
    }

    #[test]
    fn spinning_ends_with_news_or_by_itself() {
        let looks = AtomicUsize::new(0);
        assert!(spin_until(|| looks.fetch_add(1, Ordering::Relaxed) == 9));
        assert_eq!(looks.load(Ordering::Relaxed), 10);
        assert!(!spin_until(|| false));
    }

    #[test]
    fn nobody_waits_for_a_helper_that_stopped() {
        breathe(1);
        note_fault();
        assert!(std::panic::catch_unwind(|| breathe(1)).is_err());
    }
}
