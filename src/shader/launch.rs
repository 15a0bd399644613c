//! What an operation sees when it describes its GPU launches, and a launch. Knows no device and no operator.

use crate::error::{Error, Result};
use crate::quant::{KvType, PackedLayout};

/// What a device can do, as far as kernels depend on it. [`Caps::WEBGPU_MINIMUM`] is what every device can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// `f16` arithmetic in shaders.
    pub f16: bool,
    /// Matrix units of 16 by 16 by 16, f16 with f32 sums, by subgroups of 32 (with `f16`).
    pub matrix: bool,
    /// Products of packed bytes cost less than those of floats, so that activations may become bytes.
    pub int8: bool,
    /// Storage buffers that one kernel may bind.
    pub storage_buffers: usize,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: usize,
    /// Invocations of a workgroup.
    pub invocations: usize,
    /// Bytes of one storage buffer binding.
    pub binding_bytes: u64,
    /// Workgroups along one axis of a dispatch.
    pub workgroups: u32,
    /// Invocations that keep the device busy: many on a GPU, few on a CPU that stands for one.
    pub parallel: usize,
    /// The most tokens whose matrix products decode the weights for each tile anew, without workgroup memory.
    pub few_tokens: usize,
    /// Whether a CPU stands for the GPU: workgroup memory and barriers are slow there, and so is compiling long texts.
    pub software: bool,
}

impl Caps {
    /// These capabilities on a CPU that stands for a GPU.
    #[must_use]
    pub fn of_software(self) -> Self {
        Self { parallel: 1024, few_tokens: 16, int8: false, software: true, ..self }
    }

    /// These capabilities without the one that kernels of these names use, and its name; `None` when they use none that
    /// could be given up.
    #[must_use]
    pub fn without(self, kernels: &str) -> Option<(Self, &'static str)> {
        if self.matrix && kernels.contains("_matrix") {
            Some((Self { matrix: false, ..self }, "matrix units"))
        } else if self.int8 && kernels.contains("_int8") {
            Some((Self { int8: false, ..self }, "int8"))
        } else if self.f16 && kernels.contains(" f16") {
            Some((Self { f16: false, ..self }, "f16"))
        } else {
            None
        }
    }

    /// The limits that WebGPU guarantees, with no optional feature.
    pub const WEBGPU_MINIMUM: Self = Self {
        f16: false,
        matrix: false,
        int8: false,
        storage_buffers: 8,
        workgroup_bytes: 16 << 10,
        invocations: 256,
        binding_bytes: 128 << 20,
        workgroups: 65_535,
        parallel: 200_000,
        few_tokens: 4,
        software: false,
    };
}

/// A run of a weight's rows in one buffer. Rows come in tiles of four, padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightPart {
    /// The buffer: equal numbers share one.
    pub buffer: usize,
    /// The buffer's tiles in all, which determine where its planes start.
    pub buffer_tiles: usize,
    /// The buffer's tile (for a vector: element) where the part starts.
    pub at: usize,
    /// First row of the weight in this part.
    pub first_row: usize,
    /// Rows of the weight in this part.
    pub rows: usize,
}

/// How a weight lies in device memory. Matrices: planes as [`PackedLayout`] describes, one after the other in one
/// buffer of 16-byte words, columns padded to a multiple of 32 in every layout. Vectors: plain floats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightOperand {
    /// How the elements are stored.
    pub layout: PackedLayout,
    /// Where its rows are; more than one part where a buffer would be too large.
    pub parts: Vec<WeightPart>,
}

/// An input or output as a kernel author needs it.
#[derive(Debug, Clone)]
pub struct Operand {
    /// Sizes of the axes in this plan.
    pub shape: Vec<usize>,
    /// How a weight is stored; `None` for activations and constants.
    pub weight: Option<WeightOperand>,
}

impl Operand {
    /// The last axis.
    #[must_use]
    pub fn width(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows: elements without the last axis.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.len().checked_div(self.width()).unwrap_or(0)
    }

    /// The weight; fails for activations.
    pub fn weight(&self) -> Result<&WeightOperand> {
        self.weight.as_ref().ok_or_else(|| Error::internal("expected a weight, found an activation"))
    }

    /// Where a vector weight starts in its buffer, in elements; 0 for anything else.
    #[must_use]
    pub fn vector_at(&self) -> usize {
        self.weight.as_ref().and_then(|weight| weight.parts.first()).map_or(0, |part| part.at)
    }
}

/// Shapes, layouts and capabilities for which an operation describes its launches.
pub struct LaunchCx<'a> {
    /// Tokens of the plan (an upper bound: the real count is in the state buffer).
    pub tokens: usize,
    /// Rows whose logits are wanted.
    pub rows: usize,
    /// Tokens that the key/value caches hold.
    pub capacity: usize,
    /// Element type of the caches.
    pub kv_type: KvType,
    /// The device's capabilities.
    pub caps: Caps,
    /// Inputs in the operation's order.
    pub inputs: &'a [Operand],
    /// Outputs in the operation's order.
    pub outputs: &'a [Operand],
}

impl LaunchCx<'_> {
    /// An input; fails when there is none of this number.
    pub fn input(&self, index: usize) -> Result<&Operand> {
        self.inputs.get(index).ok_or_else(|| Error::internal(format!("expected an input {index}")))
    }

    /// An output; fails when there is none of this number.
    pub fn output(&self, index: usize) -> Result<&Operand> {
        self.outputs.get(index).ok_or_else(|| Error::internal(format!("expected an output {index}")))
    }
}

/// What a binding stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// An input of the operation: an activation, a constant, the tokens, or a vector weight's buffer.
    Input(usize),
    /// The buffer of one part of a weight input.
    Weight {
        /// The input.
        input: usize,
        /// The part.
        part: usize,
    },
    /// An output of the operation.
    Output(usize),
    /// Memory that lives as long as the operation's launches.
    Scratch {
        /// Tells scratches of one operation apart.
        index: usize,
        /// 4-byte elements.
        len: usize,
    },
    /// Keys of the operation's cache.
    Keys,
    /// Values of the operation's cache.
    Values,
    /// The step's state: position, real token count, sampling.
    State,
    /// The step's token ids.
    Tokens,
    /// The ids drawn by the steps of one submit.
    Drawn,
}

/// How a kernel uses a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Uniform buffer.
    Uniform,
    /// Storage that is only read.
    Read,
    /// Storage that is read and written.
    Write,
}

/// A binding: its place in the vector is its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// What is bound.
    pub resource: Resource,
    /// How it is used.
    pub access: Access,
}

/// A compute shader: equal sources are one pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name with its variant, for reports: `matvec b4g32a`.
    pub name: String,
    /// The whole WGSL text; its entry point is `main`.
    pub source: String,
}

/// One dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// What runs.
    pub kernel: Kernel,
    /// Bindings of group 0.
    pub bindings: Vec<Binding>,
    /// Workgroups per axis.
    pub workgroups: [u32; 3],
    /// Bytes of weights that it reads.
    pub weight_bytes: u64,
}
