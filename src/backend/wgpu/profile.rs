//! Where the time goes: every dispatch in a pass of its own between two timestamps. Slower than a plain run.

use super::device::Gpu;
use super::program::Program;
use crate::backend::KernelTime;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Timestamps of one query set, WebGPU's limit.
const MOST_QUERIES: usize = 4096;

/// Times by kernel since the start.
#[derive(Default)]
pub struct Profile {
    times: BTreeMap<String, KernelTime>,
}

impl Profile {
    /// Runs a program and adds its times.
    pub async fn run(&mut self, gpu: &mut Gpu, program: &Program) -> Result<()> {
        let mut first = 0;
        while first < program.len() {
            let count = (program.len() - first).min(MOST_QUERIES / 2);
            self.run_part(gpu, program, first, count).await?;
            first += count;
        }
        Ok(())
    }

    async fn run_part(&mut self, gpu: &mut Gpu, program: &Program, first: usize, count: usize) -> Result<()> {
        let queries = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("profile"),
            ty: wgpu::QueryType::Timestamp,
            count: count as u32 * 2,
        });
        let bytes = count as u64 * 16;
        let buffer = gpu.buffer("profile", bytes, wgpu::BufferUsages::QUERY_RESOLVE)?;
        gpu.bytes -= buffer.size();
        let mut encoder = gpu.encoder();
        let mut kernels = Vec::with_capacity(count);
        for index in 0..count {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some("profile"),
                timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                    query_set: &queries,
                    beginning_of_pass_write_index: Some(index as u32 * 2),
                    end_of_pass_write_index: Some(index as u32 * 2 + 1),
                }),
            });
            kernels.extend(program.record_one(first + index, &mut pass));
        }
        encoder.resolve_query_set(&queries, 0..count as u32 * 2, &buffer, 0);
        let words = gpu.submit_and_read(encoder, &buffer, count * 4).await?;
        let stamps = words.as_chunks::<4>().0.iter().map(|[a, b, c, d]| {
            let stamp = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
            stamp(*c, *d).saturating_sub(stamp(*a, *b))
        });
        let us_per_tick = f64::from(gpu.queue.get_timestamp_period()) / 1e3;
        for ((kernel, bytes), ticks) in kernels.into_iter().zip(stamps) {
            let kernel = kernel.to_string();
            let time = self.times.entry(kernel.clone()).or_insert(KernelTime { kernel, calls: 0, us: 0.0, bytes: 0 });
            time.calls += 1;
            time.us += ticks as f64 * us_per_tick;
            time.bytes += bytes;
        }
        Ok(())
    }

    /// The times, the longest first.
    pub fn finish(self) -> Vec<KernelTime> {
        let mut times: Vec<KernelTime> = self.times.into_values().collect();
        times.sort_by(|a, b| b.us.total_cmp(&a.us));
        times
    }
}

/// Fails unless the device has timestamps.
pub fn supported(gpu: &Gpu) -> Result<()> {
    if gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
        return Ok(());
    }
    Err(Error::unsupported(format!("profiling needs timestamp queries, which {} does not have", gpu.name)))
}
