//! The launches that draw a token from the logits held on the device. Pure data.

use super::program::DRAWN;
use crate::backend::DEVICE_TOP_K;
use crate::error::Result;
use crate::shader::{Caps, KernelBuilder, Launch, Resource};

/// Candidates of one workgroup of a round.
const CHUNK: usize = 1024;
/// Invocations of a workgroup of a round.
const INVOCATIONS: usize = 256;

/// Takes the most likely of `vocabulary` tokens: the best of each chunk, then the best of them.
pub fn greedy(vocabulary: usize, caps: &Caps) -> Result<Vec<Launch>> {
    let (chunks, pairs) = round("top_one", None, (vocabulary, 1), caps)?;
    let mut kernel = KernelBuilder::new("sample_greedy", "");
    kernel.u32("WG", INVOCATIONS).u32("COUNT", vocabulary.div_ceil(CHUNK)).part("lib/better").part("lib/best");
    Ok(vec![chunks, finish(&mut kernel, vocabulary, pairs, caps)?])
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
        let (launch, kept) = round(file, source, (count, keep), caps)?;
        launches.push(launch);
        let chunks = count.div_ceil(CHUNK);
        if chunks <= 1 {
            return Ok((launches, kept));
        }
        count = chunks * keep;
        source = Some(kept);
    }
}

/// Keeps the best `keep` of every chunk of `count` candidates: those that `source` holds, or the logits.
fn round(
    file: &'static str,
    source: Option<Resource>,
    (count, keep): (usize, usize),
    caps: &Caps,
) -> Result<(Launch, Resource)> {
    let chunks = count.div_ceil(CHUNK);
    let index = usize::from(matches!(source, Some(Resource::Scratch { index: 0, .. })));
    let kept = Resource::Scratch { index, len: chunks * keep * 2 };
    let mut kernel = KernelBuilder::new(file, if source.is_some() { "pairs" } else { "logits" });
    kernel.u32("WG", INVOCATIONS).u32("CHUNK", CHUNK).u32("COUNT", count).u32("KEEP", keep).part("lib/better");
    if keep == 1 {
        kernel.part("lib/best");
    }
    match source {
        None => kernel.read("logits", "f32", Resource::Input(0)).part("lib/candidates_logits"),
        Some(pairs) => kernel.read("pairs", "vec2<u32>", pairs).part("lib/candidates_pairs"),
    };
    kernel.write("kept", "vec2<u32>", kept);
    Ok((kernel.launch([chunks, 1, 1], caps)?, kept))
}

fn finish(kernel: &mut KernelBuilder, vocabulary: usize, pairs: Resource, caps: &Caps) -> Result<Launch> {
    kernel.u32("VOCABULARY", vocabulary).u32("DRAWN", DRAWN).state_mut().part("lib/take");
    kernel.read("pairs", "vec2<u32>", pairs);
    kernel.write("tokens", "u32", Resource::Tokens).write("drawn", "u32", Resource::Drawn);
    kernel.launch([1, 1, 1], caps)
}
