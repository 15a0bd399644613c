//! The states before the vocabulary, on the GPU: programs and buffers of their own, made when states are first asked for,
//! so that a model that only chats pays nothing for them.

use super::check::test_cases;
use super::device::Gpu;
use super::model::sizes;
use super::program::{Draft, Pool, Program, Shared};
use super::state::State;
use crate::backend::KvType;
use crate::error::{Error, Result};
use crate::graph::{Dims, Graph};
use crate::ops::cases::small_cases;
use crate::plan::Plan;
use crate::quant::PackedLayout;

/// Programs for a few sizes of step that keep the states of every token.
pub struct Hidden {
    pool: Pool,
    programs: Vec<Program>,
    /// Elements of a token's states.
    width: usize,
}

impl Hidden {
    /// Makes the programs of a graph that ends at the states. The one kernel that the model itself does not use is
    /// tested first.
    pub async fn new(
        gpu: &mut Gpu,
        graph: &Graph,
        shared: &Shared,
        (layouts, kv_type): (&[PackedLayout], KvType),
    ) -> Result<Self> {
        let output = graph.outputs.first().and_then(|output| graph.fact(*output).width());
        let width = output.ok_or_else(|| Error::internal("the graph has no output"))?;
        let last = graph.nodes.last().cloned().into_iter().collect();
        let cases = small_cases(&Graph { nodes: last, ..graph.clone() }, layouts, &gpu.caps)?;
        test_cases(gpu, &cases, kv_type).await?;
        let draft = |tokens| {
            let plan = Plan::new(graph, Dims { tokens, rows: tokens })?;
            Draft::new(graph, plan, &shared.target)
        };
        let drafts = sizes(&shared.target).map(draft).collect::<Result<Vec<_>>>()?;
        let pool = Pool::new(gpu, &drafts, &[])?;
        let programs = drafts.iter().map(|draft| Program::new(gpu, graph, draft, shared, &pool));
        let programs = programs.collect::<Result<_>>()?;
        Ok(Self { pool, programs, width })
    }

    /// Runs tokens at `position..`, no more than the largest program has room for; answers `[tokens, hidden_size]`.
    pub async fn run(&self, gpu: &mut Gpu, shared: &Shared, tokens: &[u32], position: usize) -> Result<Vec<f32>> {
        let program = self.programs.iter().find(|program| program.tokens >= tokens.len());
        let (Some(program), Some(states)) = (program, self.pool.outputs.first()) else {
            return Err(Error::internal(format!("no program has room for {} tokens", tokens.len())));
        };
        gpu.write(&shared.tokens, 0, tokens);
        gpu.write(&shared.state, 0, State::forward(position, tokens.len()).words());
        program.submit(gpu, tokens.len())?;
        let encoder = gpu.encoder();
        let words = gpu.submit_and_read(encoder, states, tokens.len() * self.width).await?;
        Ok(words.into_iter().map(f32::from_bits).collect())
    }
}
