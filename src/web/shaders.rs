//! The sources of every GPU kernel, so that a test can give them to the browser's own compiler.

use super::error::JsResult;
use crate::backend::gpu_kernels;
use crate::ops::cases;
use crate::shader::Caps;
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// Every kernel that a case of an operation or a sampler uses within WebGPU's least limits, with activations as floats
/// and as bytes, as JSON `[{ "name", "source" }]`.
///
/// # Errors
/// A case has no launches.
#[wasm_bindgen(js_name = kernelSources)]
pub fn kernel_sources() -> JsResult<String> {
    let cases = cases::cases()?;
    let mut rows: Vec<Value> = Vec::new();
    for int8 in [false, true] {
        for kernel in gpu_kernels(&cases, Caps { int8, ..Caps::WEBGPU_MINIMUM })? {
            let row = json!({ "name": kernel.name, "source": kernel.source });
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    Ok(Value::from(rows).to_string())
}
