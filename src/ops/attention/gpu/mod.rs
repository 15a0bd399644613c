//! `attention` on the GPU. For one token: one dispatch that writes its key and value and attends, split over keys,
//! and one that merges the splits. For more: the keys and values first, then blocks of queries. Here: which dispatches
//! there are and what they bind.

mod decode;
mod prefill;

use super::{Attention, AttentionInputs};
use crate::error::{Error, Result};
use crate::ops::rope::Pairs;
use crate::ops::rope::gpu::turns;
use crate::quant::{KV_BLOCK, KvType};
use crate::shader::{KernelBuilder, Launch, LaunchCx, Resource};

/// Invocations of the kernels that go through a head.
const INVOCATIONS: usize = 64;

pub fn launches(op: &Attention, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    if !op.head_dim.is_multiple_of(4) || op.head_dim > 1024 {
        return Err(Error::unsupported(format!(
            "expected heads of a multiple of 4 elements, at most 1024, found {}",
            op.head_dim
        )));
    }
    let ids: Vec<usize> = (0..cx.inputs.len()).collect();
    let call = Call { op, cx, inputs: op.split(&ids)?, group: op.n_heads / op.n_kv_heads.max(1) };
    let mut launches = Vec::new();
    if cx.tokens == 1 {
        decode::launches(&call, &mut launches)?;
    } else {
        prefill::launches(&call, &mut launches)?;
    }
    Ok(launches)
}

struct Call<'a> {
    op: &'a Attention,
    cx: &'a LaunchCx<'a>,
    inputs: AttentionInputs<'a, usize>,
    group: usize,
}

impl Call<'_> {
    /// Whether one binding reaches the norms of queries and keys.
    fn shared_norms(&self) -> Result<bool> {
        let Some((q, k)) = self.inputs.norms else { return Ok(true) };
        let buffer = |input: usize| Ok(self.cx.input(input)?.weight()?.parts.first().map(|part| part.buffer));
        Ok(buffer(*q)? == buffer(*k)?)
    }

    fn name(&self, extra: &str) -> String {
        let kv = self.cx.kv_type.name();
        let norm = if self.op.norm.is_some() { " norm" } else { "" };
        let rope = if self.op.rotary.is_some() { " rope" } else { "" };
        format!("{kv}{norm}{rope}{extra}")
    }

    /// What reads and, if `puts`, writes the cache: words of eight elements if `eights`, else of four.
    fn cache_words(&self, kernel: &mut KernelBuilder, eights: bool, puts: bool) {
        let op = self.op;
        let chunks = op.head_dim.div_ceil(8);
        kernel.u32("CHUNKS", chunks);
        let (words, put) = match (self.cx.kv_type, eights) {
            (KvType::F16, true) => ("lib/kv8_f16", None),
            (KvType::F32, true) => ("lib/kv8_f32", None),
            (KvType::F16, false) => ("lib/kv4_f16", Some("lib/kv4_f16_put")),
            (KvType::F32, false) => ("lib/kv4_f32", Some("lib/kv4_f32_put")),
            (KvType::Q8, _) => ("lib/kv_q8", Some("lib/kv_q8_put")),
        };
        kernel.part(words);
        if let Some(put) = put.filter(|_| puts) {
            kernel.part(put);
        }
        if self.cx.kv_type == KvType::Q8 {
            kernel.u32("KV_PAIRS", op.head_dim.div_ceil(2 * KV_BLOCK));
            kernel.u32("KV_TOPS_AT", op.n_kv_heads * self.cx.capacity * chunks);
        }
    }

    /// What every kernel that touches the cache needs to know; `norms` is the norm weights to bind.
    fn shape(&self, kernel: &mut KernelBuilder, invocations: usize, norms: Option<&usize>) -> Result<()> {
        let op = self.op;
        kernel.u32("WG", invocations).u32("HEADS", op.n_heads).u32("KV_HEADS", op.n_kv_heads).u32("GROUP", self.group);
        kernel.u32("HEAD_DIM", op.head_dim).u32("HEAD_4", op.head_dim / 4).u32("CAPACITY", self.cx.capacity);
        kernel.bool("HEAD_NORM", op.norm.is_some()).f32("NORM_EPS", op.norm.map_or(0.0, |norm| norm.eps));
        kernel.state();
        let pairs = op.rotary.map_or(Pairs::Halves, |rotary| rotary.pairs);
        let table = self.inputs.table.map(|table| Ok((Resource::Input(*table), self.cx.input(*table)?)));
        turns(kernel, pairs, table.transpose()?);
        match (self.inputs.norms, norms) {
            (Some((q, k)), Some(bound)) => {
                kernel.u32("Q_NORM_AT", self.cx.input(*q)?.vector_at());
                kernel.u32("K_NORM_AT", self.cx.input(*k)?.vector_at());
                kernel.read("head_norms", "f32", Resource::Input(*bound)).part("lib/head_norm");
            }
            _ => {
                kernel.part("lib/head_norm_absent");
            }
        }
        Ok(())
    }

    fn kv_write(&self) -> Result<Launch> {
        let mut kernel = KernelBuilder::new("kv_write", &self.name(""));
        self.shape(&mut kernel, INVOCATIONS, self.inputs.norms.map(|(_, k)| k))?;
        kernel.read("k", "f32", Resource::Input(*self.inputs.k)).read("v", "f32", Resource::Input(*self.inputs.v));
        kernel.write("keys", "KvWord", Resource::Keys).write("values", "KvWord", Resource::Values);
        self.cache_words(&mut kernel, false, true);
        kernel.part("lib/kv_store").part("lib/total");
        kernel.launch([self.cx.tokens, self.op.n_kv_heads, 1], &self.cx.caps)
    }
}
