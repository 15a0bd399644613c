//! Puts a kernel together: a generated header of constants and bindings, the kernel's file, and the parts it asks for.
//! WGSL has no preprocessor; a variant is a choice of constants and parts, never of conditional text.

use super::launch::{Access, Binding, Caps, Kernel, Launch, Resource};
use super::unroll::unroll;
use crate::error::{Context, Error, Result};
use std::fmt::Write as _;

/// Every shader text by its name: a kernel, or a part (`lib/…`, `quant/…`) that kernels are put together from.
pub static SHADERS: &[(&str, &str)] = &[
    ("attention_decode", include_str!("../../shaders/attention_decode.wgsl")),
    ("attention_merge", include_str!("../../shaders/attention_merge.wgsl")),
    ("attention_prefill", include_str!("../../shaders/attention_prefill.wgsl")),
    ("elementwise", include_str!("../../shaders/elementwise.wgsl")),
    ("embed", include_str!("../../shaders/embed.wgsl")),
    ("kv_write", include_str!("../../shaders/kv_write.wgsl")),
    ("matmul", include_str!("../../shaders/matmul.wgsl")),
    ("matmul_int8", include_str!("../../shaders/matmul_int8.wgsl")),
    ("matmul_matrix", include_str!("../../shaders/matmul_matrix.wgsl")),
    ("matmul_merge", include_str!("../../shaders/matmul_merge.wgsl")),
    ("matvec", include_str!("../../shaders/matvec.wgsl")),
    ("matvec_gated", include_str!("../../shaders/matvec_gated.wgsl")),
    ("quantize", include_str!("../../shaders/quantize.wgsl")),
    ("quantize_row", include_str!("../../shaders/quantize_row.wgsl")),
    ("query_write", include_str!("../../shaders/query_write.wgsl")),
    ("matvec_int8", include_str!("../../shaders/matvec_int8.wgsl")),
    ("matvec_int8_ahead", include_str!("../../shaders/matvec_int8_ahead.wgsl")),
    ("rms_norm", include_str!("../../shaders/rms_norm.wgsl")),
    ("rope", include_str!("../../shaders/rope.wgsl")),
    ("sample", include_str!("../../shaders/sample.wgsl")),
    ("sample_greedy", include_str!("../../shaders/sample_greedy.wgsl")),
    ("stream", include_str!("../../shaders/stream.wgsl")),
    ("take_rows", include_str!("../../shaders/take_rows.wgsl")),
    ("top_k", include_str!("../../shaders/top_k.wgsl")),
    ("top_one", include_str!("../../shaders/top_one.wgsl")),
    ("lib/add", include_str!("../../shaders/lib/add.wgsl")),
    ("lib/best", include_str!("../../shaders/lib/best.wgsl")),
    ("lib/better", include_str!("../../shaders/lib/better.wgsl")),
    ("lib/bias", include_str!("../../shaders/lib/bias.wgsl")),
    ("lib/bias_absent", include_str!("../../shaders/lib/bias_absent.wgsl")),
    ("lib/bytes8", include_str!("../../shaders/lib/bytes8.wgsl")),
    ("lib/candidates_logits", include_str!("../../shaders/lib/candidates_logits.wgsl")),
    ("lib/candidates_pairs", include_str!("../../shaders/lib/candidates_pairs.wgsl")),
    ("lib/coded", include_str!("../../shaders/lib/coded.wgsl")),
    ("lib/dense", include_str!("../../shaders/lib/dense.wgsl")),
    ("lib/draw", include_str!("../../shaders/lib/draw.wgsl")),
    ("lib/head_norm", include_str!("../../shaders/lib/head_norm.wgsl")),
    ("lib/head_norm_absent", include_str!("../../shaders/lib/head_norm_absent.wgsl")),
    ("lib/kv4_f16", include_str!("../../shaders/lib/kv4_f16.wgsl")),
    ("lib/kv4_f16_put", include_str!("../../shaders/lib/kv4_f16_put.wgsl")),
    ("lib/kv4_f32", include_str!("../../shaders/lib/kv4_f32.wgsl")),
    ("lib/kv4_f32_put", include_str!("../../shaders/lib/kv4_f32_put.wgsl")),
    ("lib/kv8_f16", include_str!("../../shaders/lib/kv8_f16.wgsl")),
    ("lib/kv8_f32", include_str!("../../shaders/lib/kv8_f32.wgsl")),
    ("lib/kv_q8", include_str!("../../shaders/lib/kv_q8.wgsl")),
    ("lib/kv_q8_put", include_str!("../../shaders/lib/kv_q8_put.wgsl")),
    ("lib/kv_store", include_str!("../../shaders/lib/kv_store.wgsl")),
    ("lib/mul", include_str!("../../shaders/lib/mul.wgsl")),
    ("lib/norm", include_str!("../../shaders/lib/norm.wgsl")),
    ("lib/norm_absent", include_str!("../../shaders/lib/norm_absent.wgsl")),
    ("lib/put_gated", include_str!("../../shaders/lib/put_gated.wgsl")),
    ("lib/put_lane", include_str!("../../shaders/lib/put_lane.wgsl")),
    ("lib/put_plain", include_str!("../../shaders/lib/put_plain.wgsl")),
    ("lib/quad_f16", include_str!("../../shaders/lib/quad_f16.wgsl")),
    ("lib/quad_f32", include_str!("../../shaders/lib/quad_f32.wgsl")),
    ("lib/products_affine", include_str!("../../shaders/lib/products_affine.wgsl")),
    ("lib/products_plain", include_str!("../../shaders/lib/products_plain.wgsl")),
    ("lib/reduce", include_str!("../../shaders/lib/reduce.wgsl")),
    ("lib/reduce_spans", include_str!("../../shaders/lib/reduce_spans.wgsl")),
    ("lib/residual", include_str!("../../shaders/lib/residual.wgsl")),
    ("lib/residual_absent", include_str!("../../shaders/lib/residual_absent.wgsl")),
    ("lib/rope_absent", include_str!("../../shaders/lib/rope_absent.wgsl")),
    ("lib/rope_table", include_str!("../../shaders/lib/rope_table.wgsl")),
    ("lib/scales_affine", include_str!("../../shaders/lib/scales_affine.wgsl")),
    ("lib/scales_plain", include_str!("../../shaders/lib/scales_plain.wgsl")),
    ("lib/row_split", include_str!("../../shaders/lib/row_split.wgsl")),
    ("lib/row_stored", include_str!("../../shaders/lib/row_stored.wgsl")),
    ("lib/silu", include_str!("../../shaders/lib/silu.wgsl")),
    ("lib/silu_mul", include_str!("../../shaders/lib/silu_mul.wgsl")),
    ("lib/silu_value", include_str!("../../shaders/lib/silu_value.wgsl")),
    ("lib/span_gated", include_str!("../../shaders/lib/span_gated.wgsl")),
    ("lib/span_plain", include_str!("../../shaders/lib/span_plain.wgsl")),
    ("lib/split", include_str!("../../shaders/lib/split.wgsl")),
    ("lib/splits", include_str!("../../shaders/lib/splits.wgsl")),
    ("lib/stage", include_str!("../../shaders/lib/stage.wgsl")),
    ("lib/state", include_str!("../../shaders/lib/state.wgsl")),
    ("lib/store_1", include_str!("../../shaders/lib/store_1.wgsl")),
    ("lib/store_2", include_str!("../../shaders/lib/store_2.wgsl")),
    ("lib/store_3", include_str!("../../shaders/lib/store_3.wgsl")),
    ("lib/sums8", include_str!("../../shaders/lib/sums8.wgsl")),
    ("lib/take", include_str!("../../shaders/lib/take.wgsl")),
    ("lib/total", include_str!("../../shaders/lib/total.wgsl")),
    ("lib/turn", include_str!("../../shaders/lib/turn.wgsl")),
    ("lib/w_dots", include_str!("../../shaders/lib/w_dots.wgsl")),
    ("lib/x_direct", include_str!("../../shaders/lib/x_direct.wgsl")),
    ("lib/x_exact", include_str!("../../shaders/lib/x_exact.wgsl")),
    ("lib/x_int8", include_str!("../../shaders/lib/x_int8.wgsl")),
    ("lib/x_padded", include_str!("../../shaders/lib/x_padded.wgsl")),
    ("lib/x_quantized", include_str!("../../shaders/lib/x_quantized.wgsl")),
    ("lib/x_staged", include_str!("../../shaders/lib/x_staged.wgsl")),
    ("quant/b2", include_str!("../../shaders/quant/b2.wgsl")),
    ("quant/b3", include_str!("../../shaders/quant/b3.wgsl")),
    ("quant/b4", include_str!("../../shaders/quant/b4.wgsl")),
    ("quant/b5", include_str!("../../shaders/quant/b5.wgsl")),
    ("quant/b6", include_str!("../../shaders/quant/b6.wgsl")),
    ("quant/b8", include_str!("../../shaders/quant/b8.wgsl")),
    ("quant/f16", include_str!("../../shaders/quant/f16.wgsl")),
    ("quant/f32", include_str!("../../shaders/quant/f32.wgsl")),
];

/// Collects constants, bindings and parts of one kernel; [`KernelBuilder::launch`] makes the launch.
#[derive(Debug, Clone)]
pub struct KernelBuilder {
    name: String,
    enables: String,
    header: String,
    parts: Vec<&'static str>,
    bindings: Vec<Binding>,
    weight_bytes: u64,
    /// Constants by name, for loops that are written out.
    constants: Vec<(String, usize)>,
}

impl KernelBuilder {
    /// A kernel whose entry point is in `shaders/<file>.wgsl`; `variant` tells its builds apart in reports.
    #[must_use]
    pub fn new(file: &'static str, variant: &str) -> Self {
        let name = if variant.is_empty() { file.to_owned() } else { format!("{file} {variant}") };
        Self {
            name,
            enables: String::new(),
            header: String::new(),
            parts: vec![file],
            bindings: Vec::new(),
            weight_bytes: 0,
            constants: Vec::new(),
        }
    }

    /// `const <name>: u32 = <value>;`
    pub fn u32(&mut self, name: &str, value: usize) -> &mut Self {
        let _ = writeln!(self.header, "const {name}: u32 = {value}u;");
        self.constants.push((name.to_owned(), value));
        self
    }

    /// `const <name>: i32 = <value>;`
    pub fn i32(&mut self, name: &str, value: i32) -> &mut Self {
        let _ = writeln!(self.header, "const {name}: i32 = {value}i;");
        self
    }

    /// `const <name>: f32 = <value>;`
    pub fn f32(&mut self, name: &str, value: f32) -> &mut Self {
        let _ = writeln!(self.header, "const {name}: f32 = {value:e}f;");
        self
    }

    /// `const <name>: bool = <value>;`
    pub fn bool(&mut self, name: &str, value: bool) -> &mut Self {
        let _ = writeln!(self.header, "const {name}: bool = {value};");
        self
    }

    /// `alias <name> = <ty>;`
    pub fn alias(&mut self, name: &str, ty: &str) -> &mut Self {
        let _ = writeln!(self.header, "alias {name} = {ty};");
        self
    }

    /// `enable <extension>;`, for which the device must have been opened.
    pub fn enable(&mut self, extension: &str) -> &mut Self {
        let _ = writeln!(self.enables, "enable {extension};");
        self
    }

    /// Adds the part `name` of [`SHADERS`], once.
    pub fn part(&mut self, name: &'static str) -> &mut Self {
        if !self.parts.contains(&name) {
            self.parts.push(name);
        }
        self
    }

    /// Binds storage that is only read, as `array<element>`.
    pub fn read(&mut self, name: &str, element: &str, resource: Resource) -> &mut Self {
        self.declare(Binding { resource, access: Access::Read }, &format!("<storage, read> {name}: array<{element}>"))
    }

    /// Binds storage that is written, as `array<element>`.
    pub fn write(&mut self, name: &str, element: &str, resource: Resource) -> &mut Self {
        let declaration = format!("<storage, read_write> {name}: array<{element}>");
        self.declare(Binding { resource, access: Access::Write }, &declaration)
    }

    /// Binds the state for reading.
    pub fn state(&mut self) -> &mut Self {
        self.part("lib/state");
        self.declare(Binding { resource: Resource::State, access: Access::Uniform }, "<uniform> state: State")
    }

    /// Binds the state for writing.
    pub fn state_mut(&mut self) -> &mut Self {
        self.part("lib/state");
        let binding = Binding { resource: Resource::State, access: Access::Write };
        self.declare(binding, "<storage, read_write> state: State")
    }

    /// Says how many bytes of weights the launch reads.
    pub fn reads_weights(&mut self, bytes: u64) -> &mut Self {
        self.weight_bytes = bytes;
        self
    }

    fn declare(&mut self, binding: Binding, declaration: &str) -> &mut Self {
        let _ = writeln!(self.header, "@group(0) @binding({}) var{declaration};", self.bindings.len());
        self.bindings.push(binding);
        self
    }

    /// A launch of `groups` workgroups numbered in one row: `wg.x + wg.y * GRID_X`.
    /// Fails when the kernel binds more storage buffers than the device allows, or the grid is too large for it.
    pub fn launch_flat(&mut self, groups: usize, caps: &Caps) -> Result<Launch> {
        let limit = caps.workgroups as usize;
        let x = groups.clamp(1, limit);
        self.u32("GRID_X", x);
        self.launch([x, groups.div_ceil(x).max(1), 1], caps)
    }

    /// A launch of this grid. Fails as [`KernelBuilder::launch_flat`] does.
    pub fn launch(&mut self, grid: [usize; 3], caps: &Caps) -> Result<Launch> {
        let mut workgroups = [1; 3];
        for (size, axis) in workgroups.iter_mut().zip(grid) {
            *size = u32::try_from(axis).ok().filter(|axis| *axis <= caps.workgroups).ok_or_else(|| {
                Error::limits(format!("expected at most {} workgroups an axis, found {axis}", caps.workgroups))
                    .at(self.name.clone())
            })?;
        }
        let storage = self.bindings.iter().filter(|binding| binding.access != Access::Uniform).count();
        if storage > caps.storage_buffers {
            return Err(Error::limits(format!(
                "expected at most {} storage buffers a kernel, found {storage}",
                caps.storage_buffers
            ))
            .at(self.name.clone()));
        }
        let mut source = format!("{}{}", self.enables, self.header);
        for part in &self.parts {
            source.push('\n');
            let text = SHADERS.iter().find(|(name, _)| name == part).map(|(_, text)| *text);
            source.push_str(text.ok_or_else(|| Error::internal(format!("there is no shader {part}")))?);
        }
        let source = if caps.software { source } else { unroll(&source, &self.constants).at(|| self.name.clone())? };
        let kernel = Kernel { name: self.name.clone(), source };
        Ok(Launch { kernel, bindings: self.bindings.clone(), workgroups, weight_bytes: self.weight_bytes })
    }
}

/// The largest power of two that is at most `x` (1 for 0).
#[must_use]
pub fn floor_power_of_two(x: usize) -> usize {
    1 << x.max(1).ilog2()
}
