//! Where the time goes: every dispatch in a pass of its own between two timestamps. Slower than a plain run; what such a pass
//! takes beyond its dispatch is measured too, and left out.

use super::device::{Gpu, Pipeline};
use super::program::Program;
use super::weights::Weights;
use crate::backend::{KernelTime, STREAM};
use crate::error::{Error, Result};
use crate::shader::{KernelBuilder, Resource};
use std::collections::BTreeMap;

/// Timestamps of one query set, WebGPU's limit.
const MOST_QUERIES: usize = 4096;

/// Workgroups and their invocations of the kernel that only reads.
const STREAM_GROUPS: usize = 4096;
const STREAM_INVOCATIONS: usize = 256;
/// How often it runs: the fastest counts.
const STREAM_TIMES: usize = 5;

/// Dispatches of a pass that shows what one of them takes in a row of them.
const ROW: usize = 33;

/// Times by kernel since the start.
pub struct Profile {
    times: BTreeMap<String, KernelTime>,
    /// Microseconds that a pass takes beyond its dispatch.
    pass_us: f64,
}

impl Profile {
    /// Measures what a pass costs (a dispatch that does next to nothing, alone and in a row) and how fast the memory gives
    /// the largest part of the weights when nothing is done with them.
    pub async fn new(gpu: &mut Gpu, weights: &Weights) -> Result<Self> {
        let mut profile = Self { times: BTreeMap::new(), pass_us: 0.0 };
        let Some((weights, bytes)) = weights.largest() else { return Ok(profile) };
        let nothing = Stream::new(gpu, weights.clone(), 16, 1)?;
        let (one, row) = (nothing.us(gpu, 1).await?, nothing.us(gpu, ROW).await?);
        profile.pass_us = (one - (row - one) / (ROW - 1) as f64).max(0.0);
        let us = Stream::new(gpu, weights, bytes, STREAM_GROUPS)?.us(gpu, 1).await?;
        profile.add(STREAM.to_owned(), us, bytes);
        Ok(profile)
    }

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
        let mut kernels = Vec::with_capacity(count);
        let record = |index: usize, pass: &mut wgpu::ComputePass<'_>| {
            kernels.extend(program.record_one(first + index, pass));
        };
        let times = timed(gpu, count, record).await?;
        for ((kernel, bytes), us) in kernels.into_iter().zip(times) {
            // One kernel for matrices of different sizes is several rows.
            let kernel = if bytes > 0 { format!("{kernel}, {:.1} MB", bytes as f64 / 1e6) } else { kernel.to_string() };
            self.add(kernel, us, bytes);
        }
        Ok(())
    }

    fn add(&mut self, kernel: String, us: f64, bytes: u64) {
        let time = self.times.entry(kernel.clone()).or_insert(KernelTime { kernel, calls: 0, us: 0.0, bytes: 0 });
        time.calls += 1;
        time.us += (us - self.pass_us).max(0.0);
        time.bytes += bytes;
    }

    /// The times, the longest first.
    pub fn finish(self) -> Vec<KernelTime> {
        let mut times: Vec<KernelTime> = self.times.into_values().collect();
        times.sort_by(|a, b| b.us.total_cmp(&a.us));
        times
    }
}

/// A kernel that only reads: the memory's speed, and what it costs to measure.
struct Stream {
    pipeline: Pipeline,
    group: wgpu::BindGroup,
    groups: usize,
}

impl Stream {
    fn new(gpu: &mut Gpu, weights: wgpu::BufferBinding<'_>, bytes: u64, groups: usize) -> Result<Self> {
        let sink = gpu.buffer("stream", 16, wgpu::BufferUsages::empty())?;
        gpu.bytes -= sink.size();
        let mut kernel = KernelBuilder::new(STREAM, "");
        kernel.u32("WG", STREAM_INVOCATIONS).u32("GROUPS", groups).u32("COUNT", bytes as usize / 16);
        kernel.read("data", "vec4<u32>", Resource::Input(0)).write("kept", "vec2<u32>", Resource::Drawn);
        let launch = kernel.launch([groups, 1, 1], &gpu.caps)?;
        let pipeline = gpu.pipeline(&launch.kernel, &launch.bindings)?;
        let group = gpu.bind(&pipeline, &[weights, sink.as_entire_buffer_binding()]);
        Ok(Self { pipeline, group, groups })
    }

    /// Microseconds of a pass that runs it so many times: the least of several.
    async fn us(&self, gpu: &mut Gpu, runs: usize) -> Result<f64> {
        let times = timed(gpu, STREAM_TIMES, |_, pass| {
            pass.set_pipeline(&self.pipeline.compute);
            pass.set_bind_group(0, &self.group, &[]);
            (0..runs).for_each(|_| pass.dispatch_workgroups(self.groups as u32, 1, 1));
        });
        Ok(times.await?.into_iter().min_by(f64::total_cmp).unwrap_or_default())
    }
}

/// Microseconds of each of `count` passes.
async fn timed(
    gpu: &mut Gpu,
    count: usize,
    mut record: impl FnMut(usize, &mut wgpu::ComputePass<'_>),
) -> Result<Vec<f64>> {
    let queries = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: Some("profile"),
        ty: wgpu::QueryType::Timestamp,
        count: count as u32 * 2,
    });
    let buffer = gpu.buffer("profile", count as u64 * 16, wgpu::BufferUsages::QUERY_RESOLVE)?;
    gpu.bytes -= buffer.size();
    let mut encoder = gpu.encoder();
    for index in 0..count {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some("profile"),
            timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                query_set: &queries,
                beginning_of_pass_write_index: Some(index as u32 * 2),
                end_of_pass_write_index: Some(index as u32 * 2 + 1),
            }),
        });
        record(index, &mut pass);
    }
    encoder.resolve_query_set(&queries, 0..count as u32 * 2, &buffer, 0);
    let words = gpu.submit_and_read(encoder, &buffer, count * 4).await?;
    let us_per_tick = f64::from(gpu.queue.get_timestamp_period()) / 1e3;
    let stamp = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let times = words.as_chunks::<4>().0.iter();
    Ok(times.map(|[a, b, c, d]| stamp(*c, *d).saturating_sub(stamp(*a, *b)) as f64 * us_per_tick).collect())
}

/// Fails unless the device has timestamps.
pub fn supported(gpu: &Gpu) -> Result<()> {
    if gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
        return Ok(());
    }
    Err(Error::unsupported(format!("profiling needs timestamp queries, which {} does not have", gpu.name)))
}
