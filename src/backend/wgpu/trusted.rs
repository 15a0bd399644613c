//! What the graphics library calls unsafe: experimental features, and shaders without run-time checks.
//! Knows no kernel.
#![allow(unsafe_code)]

/// Leave to use matrix units.
pub fn experimental() -> wgpu::ExperimentalFeatures {
    // SAFETY: the token only acknowledges that such features may have faults. A kernel that uses matrix units is
    // compared with its reference on this device before any model runs it, and given up when it differs.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}

/// A module of one of our kernels, which keep every index within its array by construction: none depends on what a
/// file or a prompt holds, except token ids, and those are bounded where they are read. Nor do they divide by zero.
pub fn shader(device: &wgpu::Device, name: &str, source: &str) -> wgpu::ShaderModule {
    let descriptor =
        wgpu::ShaderModuleDescriptor { label: Some(name), source: wgpu::ShaderSource::Wgsl(source.into()) };
    // SAFETY: as above; loops end because their counters are compared with constants or the device's own state.
    unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
}
