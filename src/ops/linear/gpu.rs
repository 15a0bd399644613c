//! `linear` on the GPU.

use super::Linear;
use crate::error::{Error, Result};
use crate::shader::{Launch, LaunchCx};

pub fn launches(_op: &Linear, _cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    Err(Error::unsupported("no kernel"))
}
