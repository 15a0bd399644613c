//! The state buffer: what `shaders/lib/state.wgsl` declares, as the host writes it.

use crate::backend::DeviceSampling;
use bytemuck::{Pod, Zeroable};

/// One step's state.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub struct State {
    /// Position of the step's first token.
    pub position: u32,
    /// Tokens of the step.
    pub tokens: u32,
    /// Tokens drawn since the host wrote the state.
    pub drawn: u32,
    counter: u32,
    seed: u32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    temperature: f32,
    /// Position of the next token to be drawn.
    next: u32,
    reserved: [u32; 2],
}

impl State {
    /// For running given tokens.
    pub fn forward(position: usize, tokens: usize) -> Self {
        Self { position: position as u32, tokens: tokens as u32, ..Self::default() }
    }

    /// For drawing tokens from `position` on.
    pub fn decode(position: usize, sampling: DeviceSampling) -> Self {
        Self {
            tokens: 1,
            next: position as u32,
            counter: sampling.counter,
            seed: sampling.seed,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            temperature: sampling.temperature,
            ..Self::default()
        }
    }

    /// The words to write.
    pub fn words(&self) -> &[u32] {
        bytemuck::cast_slice(std::slice::from_ref(self))
    }
}
