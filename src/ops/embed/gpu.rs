//! `embed` on the GPU: a launch for each buffer of the table.

use crate::error::Result;
use crate::shader::{KernelBuilder, Launch, LaunchCx, Resource, device_columns};

const INVOCATIONS: usize = 128;

pub fn launches(cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    let (table, tokens, width) = (cx.input(1)?, cx.input(0)?.len(), cx.output(0)?.width());
    let weight = table.weight()?;
    let steps = device_columns(weight.layout, width) / 8;
    let mut launches = Vec::new();
    for (index, part) in weight.parts.iter().enumerate() {
        let mut kernel = KernelBuilder::new("embed", &weight.layout.name());
        kernel.u32("WG", INVOCATIONS).u32("TOKENS", tokens).u32("WIDTH", width).u32("VOCABULARY", table.rows());
        kernel.u32("FIRST", part.first_row).u32("COUNT", part.rows);
        kernel.read("tokens", "u32", Resource::Input(0)).weights(1, (index, part), weight.layout, width);
        kernel.write("dst", "f32", Resource::Output(0));
        let row = weight.layout.plane_bytes(4, width).iter().sum::<usize>() / 4;
        kernel.reads_weights((tokens * row) as u64);
        launches.push(kernel.launch_flat((tokens * steps).div_ceil(INVOCATIONS), &cx.caps)?);
    }
    Ok(launches)
}
