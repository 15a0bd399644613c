//! GPU launches as pure data, and the assembly of WGSL: no GPU type is known here.

mod builder;
mod launch;
mod unroll;
mod weights;

pub use builder::{KernelBuilder, SHADERS, floor_power_of_two};
pub use launch::{Access, Binding, Caps, Kernel, Launch, LaunchCx, Operand, Resource, WeightOperand, WeightPart};
pub use weights::{device_columns, device_planes};
