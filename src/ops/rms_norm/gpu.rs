//! `rms_norm` on the GPU.

use super::RmsNorm;
use crate::error::{Error, Result};
use crate::shader::{Launch, LaunchCx};

pub fn launches(_op: &RmsNorm, _cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    Err(Error::unsupported("no kernel"))
}
