//! `elementwise` on the GPU.

use super::Elementwise;
use crate::error::{Error, Result};
use crate::shader::{Launch, LaunchCx};

pub fn launches(_op: Elementwise, _cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    Err(Error::unsupported("no kernel"))
}
