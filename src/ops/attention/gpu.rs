//! `attention` on the GPU.

use super::Attention;
use crate::error::{Error, Result};
use crate::shader::{Launch, LaunchCx};

pub fn launches(_op: &Attention, _cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    Err(Error::unsupported("no kernel"))
}
