//! Every kernel against the references, on whatever adapter there is; a missing one fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::check::check;
use super::device::Gpu;
use crate::backend::{KvType, OpenOptions};
use crate::ops::cases::{self, Case};
use futures::executor::block_on;

fn gpu() -> Gpu {
    let options = OpenOptions { allow_fallback_adapter: true, ..OpenOptions::default() };
    block_on(Gpu::open(options)).expect("no adapter: install mesa-vulkan-drivers and libvulkan1, or a GPU's driver")
}

fn check_all(cases: Vec<Case>, kv_type: KvType, tolerance: f64) {
    let mut gpu = gpu();
    assert!(!cases.is_empty());
    let mut failures = Vec::new();
    for case in &cases {
        match block_on(check(&mut gpu, case, kv_type)) {
            Ok(outcome) if outcome.nmse <= tolerance => {}
            Ok(outcome) => failures.push(format!("{}: {:?}: error {:e}", case.name, outcome.kernels, outcome.nmse)),
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn elementwise_agrees_with_the_reference() {
    check_all(cases::elementwise_cases().unwrap(), KvType::F32, 1e-12);
}

#[test]
fn embed_agrees_with_the_reference() {
    check_all(cases::embed_cases().unwrap(), KvType::F32, 1e-13);
}

#[test]
fn rms_norm_agrees_with_the_reference() {
    check_all(cases::rms_norm_cases().unwrap(), KvType::F32, 1e-12);
}

#[test]
fn rope_agrees_with_the_reference() {
    check_all(cases::rope_cases().unwrap(), KvType::F32, 1e-12);
}

#[test]
fn linear_agrees_with_the_reference() {
    check_all(cases::linear_cases().unwrap(), KvType::F32, 1e-10);
}

#[test]
fn attention_agrees_with_the_reference() {
    check_all(cases::attention_cases().unwrap(), KvType::F32, 1e-10);
}

#[test]
fn attention_over_an_f16_cache_agrees_with_the_reference() {
    check_all(cases::attention_cases().unwrap(), KvType::F16, 1e-6);
}
