//! What users choose when they load a model.

use crate::backend::{BACKENDS, BackendRow, KvType};
use crate::error::{Error, Result};
use std::path::PathBuf;
use std::str::FromStr;

/// Which model to load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Model {
    /// The registry's default model.
    #[default]
    Default,
    /// The registry's `zen3-nano`.
    Zen3Nano,
    /// A file; of a split model, any of its shards.
    File(PathBuf),
    /// A registry name, a path or a URL.
    Named(String),
}

impl From<&str> for Model {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

/// Which backend to run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// The first that works, in the order of `BACKENDS`, software GPUs and the reference left out.
    #[default]
    Auto,
    /// SIMD kernels on the CPU.
    Cpu,
    /// WebGPU, Vulkan or Metal through wgpu; software adapters too.
    Wgpu,
    /// The slow oracle.
    Reference,
}

impl Backend {
    /// The name of the backend in `BACKENDS`; `None` for [`Backend::Auto`].
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Cpu => Some("cpu"),
            Self::Wgpu => Some("wgpu"),
            Self::Reference => Some("reference"),
        }
    }

    /// The rows to try, in order.
    pub(crate) fn candidates(self) -> Result<Vec<&'static BackendRow>> {
        let Some(name) = self.name() else {
            return Ok(BACKENDS.iter().filter(|row| row.automatic).collect());
        };
        let row = BACKENDS.iter().find(|row| row.name == name);
        Ok(vec![row.ok_or_else(|| Error::internal(format!("no backend row is named {name}")))?])
    }
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "wgpu" | "webgpu" => Ok(Self::Wgpu),
            "reference" => Ok(Self::Reference),
            _ => Err(Error::invalid_argument(format!(
                "backend: expected auto, cpu, wgpu, webgpu or reference, found {name:?}"
            ))),
        }
    }
}

/// Element type of the key/value cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvCache {
    /// The engine chooses: 16-bit floats.
    #[default]
    Auto,
    /// 16-bit floats.
    F16,
    /// Bytes with a scale a block of 32 elements: about half the memory of 16-bit floats.
    Q8,
    /// 32-bit floats.
    F32,
}

impl KvCache {
    pub(crate) fn kv_type(self) -> KvType {
        match self {
            Self::Auto | Self::F16 => KvType::F16,
            Self::Q8 => KvType::Q8,
            Self::F32 => KvType::F32,
        }
    }
}

impl FromStr for KvCache {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "f16" => Ok(Self::F16),
            "q8" => Ok(Self::Q8),
            "f32" => Ok(Self::F32),
            _ => Err(Error::invalid_argument(format!("kvCache: expected auto, f16, q8 or f32, found {name:?}"))),
        }
    }
}

/// Whether weights are quantized again while they load. A weight that would not get smaller stays as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quantization {
    /// The engine chooses: weights stay as the file has them where they fit the memory, else the most bits that fit.
    #[default]
    Auto,
    /// Weights stay as the file has them.
    None,
    /// Affine 2-bit groups.
    Afq2,
    /// Affine 3-bit groups.
    Afq3,
    /// Affine 4-bit groups.
    Afq4,
    /// Affine 6-bit groups.
    Afq6,
    /// Affine 8-bit groups.
    Afq8,
    /// Symmetric 8-bit rows, and on the CPU activations in 8 bits with one scale and zero point.
    Int8,
}

impl Quantization {
    const ALL: [Self; 8] =
        [Self::Auto, Self::None, Self::Afq2, Self::Afq3, Self::Afq4, Self::Afq6, Self::Afq8, Self::Int8];

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Afq2 => "afq-2",
            Self::Afq3 => "afq-3",
            Self::Afq4 => "afq-4",
            Self::Afq6 => "afq-6",
            Self::Afq8 => "afq-8",
            Self::Int8 => "int8",
        }
    }
}

impl FromStr for Quantization {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|quantization| quantization.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::invalid_argument(format!("quantization: expected one of {names}, found {name:?}"))
        })
    }
}

/// What to load and how. `Default` loads the registry's default model on the best backend.
#[derive(Debug, Clone, Default)]
pub struct EdgeConfig {
    /// The model.
    pub model: Model,
    /// Quantization while loading.
    pub quantization: Quantization,
    /// Tokens of context; 0 takes the least of the model's, 4096 and what memory allows.
    pub max_context_tokens: usize,
    /// Most bytes for weights and caches; 0 is no limit but the backend's own.
    pub max_memory_bytes: u64,
    /// The backend.
    pub backend: Backend,
    /// CPU threads; 0 takes the backend's default.
    pub threads: usize,
    /// A Jinja chat template instead of the file's.
    pub chat_template: Option<String>,
    /// Element type of the key/value cache.
    pub kv_cache: KvCache,
    /// Most bytes for copies of conversations that left the key/value cache, so that going back to one does not run its
    /// prompt again; 0 keeps none. `None` takes as many as the cache itself, within `max_memory_bytes`.
    pub prefix_cache_bytes: Option<u64>,
}
