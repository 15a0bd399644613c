//! `rope` on the GPU.

use super::Rope;
use crate::error::{Error, Result};
use crate::shader::{Launch, LaunchCx};

pub fn launches(_op: &Rope, _cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    Err(Error::unsupported("no kernel"))
}
