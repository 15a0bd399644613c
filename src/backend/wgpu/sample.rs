//! The launches that draw a token from the logits held on the device. Pure data.

use crate::backend::DEVICE_TOP_K;
use crate::error::Result;
use crate::shader::{Caps, KernelBuilder, Launch, Resource};

/// Candidates of one workgroup of a round.
const CHUNK: usize = 1024;
/// Invocations of a workgroup of a round.
const INVOCATIONS: usize = 256;

/// Takes the most likely of `vocabulary` tokens.
pub fn greedy(vocabulary: usize, caps: &Caps) -> Result<Vec<Launch>> {
    let (mut launches, pairs) = rounds("top_one", vocabulary, 1, caps)?;
    let mut kernel = KernelBuilder::new("sample_greedy", "");
    launches.push(finish(&mut kernel, vocabulary, pairs, caps)?);
    Ok(launches)
}

/// Draws from the most likely of `vocabulary` tokens as the state says.
pub fn drawn(vocabulary: usize, caps: &Caps) -> Result<Vec<Launch>> {
    let keep = DEVICE_TOP_K as usize;
    let (mut launches, pairs) = rounds("top_k", vocabulary, keep, caps)?;
    let mut kernel = KernelBuilder::new("sample", "");
    kernel.u32("KEEP", keep).part("lib/draw");
    launches.push(finish(&mut kernel, vocabulary, pairs, caps)?);
    Ok(launches)
}

/// Rounds that each keep the best `keep` of every chunk, until one chunk is left; and where its candidates are.
fn rounds(file: &'static str, vocabulary: usize, keep: usize, caps: &Caps) -> Result<(Vec<Launch>, Resource)> {
    let mut launches = Vec::new();
    let mut source: Option<Resource> = None;
    let mut count = vocabulary;
    loop {
        let chunks = count.div_ceil(CHUNK);
        let kept = Resource::Scratch { index: launches.len() % 2, len: chunks * keep * 2 };
        let mut kernel = KernelBuilder::new(file, if source.is_some() { "pairs" } else { "logits" });
        kernel.u32("WG", INVOCATIONS).u32("CHUNK", CHUNK).u32("COUNT", count).u32("KEEP", keep).part("lib/better");
        match source {
            None => kernel.read("logits", "f32", Resource::Input(0)).part("lib/candidates_logits"),
            Some(pairs) => kernel.read("pairs", "vec2<u32>", pairs).part("lib/candidates_pairs"),
        };
        kernel.write("kept", "vec2<u32>", kept);
        launches.push(kernel.launch([chunks, 1, 1], caps)?);
        source = Some(kept);
        count = chunks * keep;
        if chunks <= 1 {
            return Ok((launches, kept));
        }
    }
}

fn finish(kernel: &mut KernelBuilder, vocabulary: usize, pairs: Resource, caps: &Caps) -> Result<Launch> {
    kernel.u32("VOCABULARY", vocabulary).state_mut().part("lib/take");
    kernel.read("pairs", "vec2<u32>", pairs);
    kernel.write("tokens", "u32", Resource::Tokens).write("drawn", "u32", Resource::Drawn);
    kernel.launch([1, 1, 1], caps)
}
