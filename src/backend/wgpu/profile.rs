//! Where the time goes, by timestamps around passes: each step runs once without each of its kernels. Many times slower than
//! a plain run.

use super::device::{Gpu, Pipeline};
use super::program::{Kind, Program};
use super::weights::Weights;
use crate::backend::{KernelTime, STREAM};
use crate::error::{Error, Result};
use crate::shader::{KernelBuilder, Resource};
use std::collections::BTreeMap;

/// Workgroups, at most, and their invocations of the kernel that only reads.
const STREAM_GROUPS: usize = 4096;
const STREAM_INVOCATIONS: usize = 256;
/// How often a time is taken: the least counts, and the first ones only wake the device.
const STREAM_TIMES: usize = 10;
/// Bytes that are more than caches hold.
const BEYOND_CACHES: u64 = 256 << 20;

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
    /// the largest part of the weights when nothing is done with them: as for a kernel, that is what a pass takes with it less
    /// what it takes without. Other parts are read before it, as by a token: of one that is read again and again, some would
    /// come from a cache.
    pub async fn new(gpu: &mut Gpu, weights: &Weights) -> Result<Self> {
        let mut profile = Self { times: BTreeMap::new(), pass_us: 0.0 };
        // One for all, so that each waits for the one before it.
        let sink = gpu.buffer("stream", 16, wgpu::BufferUsages::empty())?;
        gpu.bytes -= sink.size();
        let largest = weights.parts().enumerate().max_by_key(|(_, (_, bytes))| *bytes);
        let Some((place, (largest, bytes))) = largest else { return Ok(profile) };
        let nothing = Stream::new(gpu, &sink, largest.clone(), 16)?;
        let [one, row] = least(gpu, [&[&nothing], &[&nothing; ROW]]).await?;
        profile.pass_us = (one - (row - one) / (ROW - 1) as f64).max(0.0);
        let (mut streams, mut read) = (Vec::new(), 0);
        for (index, (part, bytes)) in weights.parts().enumerate() {
            if index != place && read < BEYOND_CACHES {
                streams.push(Stream::new(gpu, &sink, part, bytes)?);
                read += bytes;
            }
        }
        streams.push(Stream::new(gpu, &sink, largest, bytes)?);
        let all: Vec<&Stream> = streams.iter().collect();
        let [whole, without] = least(gpu, [&all, &all[..all.len() - 1]]).await?;
        let us = (whole - without).max(0.0);
        profile.times.insert(STREAM.to_owned(), KernelTime { kernel: STREAM.to_owned(), calls: 1, us, bytes });
        Ok(profile)
    }

    /// Runs a step and adds its times. That of a kernel is what the step takes with it less what it takes without it, so that
    /// it is measured among its neighbours. What is computed without one is wrong; the last run is of all, and right.
    pub async fn run_step(&mut self, gpu: &mut Gpu, step: &Program) -> Result<()> {
        let mut calls: BTreeMap<Kind, u64> = BTreeMap::new();
        step.kinds().for_each(|kind| *calls.entry(kind).or_default() += 1);
        // The first run of all only wakes the device.
        let runs: Vec<Option<&Kind>> = std::iter::once(None).chain(calls.keys().map(Some)).chain([None]).collect();
        // A prompt's runs take long enough to be submitted one at a time.
        let at_once = if step.tokens == 1 { runs.len() } else { 1 };
        let mut times = Vec::with_capacity(runs.len());
        for some in runs.chunks(at_once) {
            let record = |index: usize, pass: &mut wgpu::ComputePass<'_>| match some[index] {
                Some(kind) => step.record_without(kind, pass),
                None => step.record(pass),
            };
            times.extend(timed(gpu, some.len(), record).await?);
        }
        let whole = times.last().copied().unwrap_or_default();
        for ((kind, calls), without) in calls.iter().zip(times.iter().skip(1)) {
            self.add(kind, *calls, whole - without);
        }
        Ok(())
    }

    /// Runs a program that may run only once, each dispatch in a pass of its own, and adds its times.
    pub async fn run_once(&mut self, gpu: &mut Gpu, program: &Program) -> Result<()> {
        let times = timed(gpu, program.len(), |index, pass| program.record_one(index, pass)).await?;
        for (kind, us) in program.kinds().zip(times) {
            self.add(&kind, 1, us - self.pass_us);
        }
        Ok(())
    }

    fn add(&mut self, kind: &Kind, calls: u64, us: f64) {
        let Kind { kernel, bytes } = kind;
        // One kernel for matrices of different sizes is several rows.
        let kernel = match bytes {
            0 => kernel.to_string(),
            _ => format!("{kernel}, {:.1} MB", *bytes as f64 / 1e6),
        };
        let time = self.times.entry(kernel.clone()).or_insert(KernelTime { kernel, calls: 0, us: 0.0, bytes: 0 });
        time.calls += calls;
        time.us += us;
        time.bytes += bytes * calls;
    }

    /// The times, the longest first.
    pub fn finish(self) -> Vec<KernelTime> {
        let mut times: Vec<KernelTime> = self.times.into_values().collect();
        // A difference of times that are alike may come out below nothing.
        times.iter_mut().for_each(|time| time.us = time.us.max(0.0));
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
    fn new(gpu: &mut Gpu, sink: &wgpu::Buffer, part: wgpu::BufferBinding<'_>, bytes: u64) -> Result<Self> {
        let words = bytes as usize / 16;
        let groups = words.div_ceil(STREAM_INVOCATIONS).min(STREAM_GROUPS);
        let mut kernel = KernelBuilder::new(STREAM, "");
        kernel.u32("WG", STREAM_INVOCATIONS).u32("GROUPS", groups).u32("COUNT", words);
        kernel.read("data", "vec4<u32>", Resource::Input(0)).write("kept", "vec2<u32>", Resource::Drawn);
        let launch = kernel.launch([groups, 1, 1], &gpu.caps)?;
        let pipeline = gpu.pipeline(&launch.kernel, &launch.bindings)?;
        let group = gpu.bind(&pipeline, &[part, sink.as_entire_buffer_binding()]);
        Ok(Self { pipeline, group, groups })
    }

    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline.compute);
        pass.set_bind_group(0, &self.group, &[]);
        pass.dispatch_workgroups(self.groups as u32, 1, 1);
    }
}

/// Microseconds of two passes, each of such dispatches: the least of several runs in turns.
async fn least(gpu: &mut Gpu, passes: [&[&Stream]; 2]) -> Result<[f64; 2]> {
    let mut least = [f64::INFINITY; 2];
    for _ in 0..STREAM_TIMES {
        let record = |index: usize, pass: &mut wgpu::ComputePass<'_>| {
            passes[index].iter().for_each(|stream| stream.record(pass));
        };
        let times = timed(gpu, passes.len(), record).await?;
        least.iter_mut().zip(times).for_each(|(least, us)| *least = least.min(us));
    }
    Ok(least)
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
