//! Facts of this machine that a benchmark is read against. Knows nothing of models.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// Bytes read for the measurement: more than any cache holds.
const STREAM_BYTES: usize = 256 << 20;
const STREAM_RUNS: usize = 3;

/// How many bytes `n_threads` threads read from memory per second, in GB: the best of a few runs.
pub fn stream_gb_per_second(n_threads: usize) -> f64 {
    let n_threads = n_threads.max(1);
    // Written with a pattern, so that every page is really there.
    let words: Vec<u64> = (0..STREAM_BYTES as u64 / 8).collect();
    let part = words.len().div_ceil(n_threads);
    let run = || {
        let begin = Instant::now();
        let sums = thread::scope(|scope| {
            let sum = |words: &[u64]| words.iter().fold(0u64, |sum, &word| sum.wrapping_add(word));
            let threads: Vec<_> = words.chunks(part).map(|words| scope.spawn(move || sum(words))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).fold(0, u64::wrapping_add)
        });
        black_box(sums);
        STREAM_BYTES as f64 / 1e9 / begin.elapsed().as_secs_f64()
    };
    (0..STREAM_RUNS).map(|_| run()).fold(0.0, f64::max)
}

/// The most memory this program has had at once, where the system tells.
pub fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_at_some_rate_by_one_thread_and_by_several() {
        for n_threads in [0, 1, 3] {
            assert!(stream_gb_per_second(n_threads) > 0.05);
        }
    }
}
