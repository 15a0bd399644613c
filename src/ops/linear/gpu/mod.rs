//! `linear` on the GPU: `matvec` for few tokens, `matmul` for more. Matrices that lie one after the other in a buffer
//! are one dispatch; others one each, and a matrix in several buffers one for each. Here: which dispatches there are and
//! what they bind; how a kernel walks its matrix is its own file's.

mod matmul;
mod matvec;

use super::{Gate, Linear, LinearInputs};
use crate::error::{Error, Result};
use crate::ops::{elementwise, rms_norm};
use crate::quant::PackedLayout;
use crate::shader::{KernelBuilder, Launch, LaunchCx, Resource, WeightPart, device_columns};
use matvec::Walk;
use std::ops::Range;

/// The most matrices of one dispatch.
const MATRICES: usize = 3;

/// Scratches of the operation by what they hold.
const NORMED: usize = 0;
const GATE: usize = 1;
const UP: usize = 2;
const PRODUCT: usize = 3;
const BYTES: usize = 4;
const SUMS: usize = 5;

pub fn launches(op: &Linear, cx: &LaunchCx<'_>) -> Result<Vec<Launch>> {
    let ids: Vec<usize> = (0..cx.inputs.len()).collect();
    let inputs = op.split(&ids)?;
    let x = cx.input(*inputs.x)?;
    let (tokens, columns) = (x.rows(), x.width());
    for matrix in inputs.matrices {
        let layout = cx.input(*matrix)?.weight()?.layout;
        // Kernels read whole steps of activations as long as rows are whole: none may reach past the last row.
        if columns.is_multiple_of(32) && device_columns(layout, columns) != columns {
            return Err(Error::unsupported(format!(
                "expected columns in whole groups of {}, found {columns}",
                layout.name()
            )));
        }
    }
    let mut call = Call { op, cx, inputs, tokens, columns, x: Resource::Input(0), bytes: None, norm: None };
    let mut launches = Vec::new();
    if let (Some(weight), Some(eps)) = (call.inputs.norm, op.norm) {
        if tokens <= cx.caps.few_tokens && columns.is_multiple_of(32) {
            call.norm = Some((*weight, eps));
        } else {
            call.x = Resource::Scratch { index: NORMED, len: x.len() };
            launches.push(rms_norm::gpu::launch(cx, [*call.inputs.x, *weight], eps, call.x)?);
        }
    }
    if call.many() && matmul::takes_bytes(&cx.caps, columns) && call.any_coded()? {
        let (launch, bytes) = matmul::quantize(&call)?;
        launches.push(launch);
        call.bytes = Some(bytes);
    }
    if let ([matrix], true) = (call.inputs.matrices, tokens == 1)
        && matvec::quantizes_before(&cx.caps, cx.input(*matrix)?.rows(), columns)
        && call.any_coded()?
    {
        let (launch, bytes) = matvec::quantize(&call)?;
        launches.push(launch);
        (call.bytes, call.norm) = (Some(bytes), None);
    }
    let runs = call.runs()?;
    if op.gate == Some(Gate::Silu) && runs.len() > 1 {
        call.separate_gate(&mut launches)?;
    } else {
        for run in runs {
            call.run(&run, &mut launches)?;
        }
    }
    Ok(launches)
}

/// One use of the operation.
struct Call<'a> {
    op: &'a Linear,
    cx: &'a LaunchCx<'a>,
    inputs: LinearInputs<'a, usize>,
    tokens: usize,
    columns: usize,
    /// The activations, normalized already unless `norm` is fused.
    x: Resource,
    /// The activations as bytes, normalized already, where a dispatch before makes them so.
    bytes: Option<Resource>,
    norm: Option<(usize, f32)>,
}

/// One dispatch: a part of a buffer and what becomes of its rows.
struct Product<'a> {
    /// First matrix.
    matrix: usize,
    part: (usize, &'a WeightPart),
    /// Rows of each matrix of the run.
    rows: Vec<usize>,
    /// Where each matrix goes.
    outputs: Vec<Resource>,
    gated: bool,
    residual: bool,
}

/// Which kernel makes a product.
#[derive(Clone, Copy)]
enum Kind {
    /// Many tokens.
    Matmul,
    /// Many tokens, activations as bytes.
    MatmulInt8,
    /// Few tokens, activations as floats.
    Matvec,
    /// One token, activations as bytes.
    MatvecInt8,
}

impl<'a> Call<'a> {
    /// The matrices in ranges that one dispatch can cover.
    fn runs(&self) -> Result<Vec<Range<usize>>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for matrix in 0..self.op.n_matrices {
            match runs.last_mut() {
                Some(run) if run.len() < MATRICES && self.adjoins(matrix)? => run.end = matrix + 1,
                _ => runs.push(matrix..matrix + 1),
            }
        }
        Ok(runs)
    }

    /// Whether matrix and bias follow those before them in their buffers.
    fn adjoins(&self, matrix: usize) -> Result<bool> {
        let follows = |inputs: &[usize], unit: usize| -> Result<bool> {
            let (Some(&before), Some(&after)) = (inputs.get(matrix.wrapping_sub(1)), inputs.get(matrix)) else {
                return Ok(false);
            };
            let (before, after) = (self.cx.input(before)?.weight()?, self.cx.input(after)?.weight()?);
            let ([a], [b]) = (before.parts.as_slice(), after.parts.as_slice()) else { return Ok(false) };
            let rows = a.rows.next_multiple_of(4) / unit;
            Ok(before.layout == after.layout && a.buffer == b.buffer && a.at + rows == b.at)
        };
        Ok(follows(self.inputs.matrices, 4)? && (self.inputs.biases.is_empty() || follows(self.inputs.biases, 1)?))
    }

    /// The dispatches of a run of matrices.
    fn run(&self, run: &Range<usize>, launches: &mut Vec<Launch>) -> Result<()> {
        let gated = self.op.gate.is_some();
        let outputs: Vec<Resource> =
            if gated { vec![Resource::Output(0)] } else { run.clone().map(Resource::Output).collect() };
        self.products(run, &outputs, gated, launches)
    }

    fn products(
        &self,
        run: &Range<usize>,
        outputs: &[Resource],
        gated: bool,
        launches: &mut Vec<Launch>,
    ) -> Result<()> {
        let weight = self.cx.input(self.matrix(run.start)?)?.weight()?;
        for part in weight.parts.iter().enumerate() {
            let rows = if run.len() == 1 {
                vec![part.1.rows]
            } else {
                run.clone().map(|matrix| Ok(self.cx.input(self.matrix(matrix)?)?.rows())).collect::<Result<_>>()?
            };
            let residual = self.op.residual && (gated || self.op.gate.is_none());
            let product = Product { matrix: run.start, part, rows, outputs: outputs.to_vec(), gated, residual };
            self.launch(&product, launches)?;
        }
        Ok(())
    }

    /// Gate and up projection where one dispatch cannot cover them: each to a scratch, then together.
    fn separate_gate(&self, launches: &mut Vec<Launch>) -> Result<()> {
        let len = self.cx.output(0)?.len();
        let [gate, up] = [GATE, UP].map(|index| Resource::Scratch { index, len });
        self.products(&(0..1), &[gate], false, launches)?;
        self.products(&(1..2), &[up], false, launches)?;
        match self.inputs.residual {
            None => launches.push(elementwise::gpu::silu_mul(self.cx, gate, up, (Resource::Output(0), len))?),
            Some(residual) => {
                let product = Resource::Scratch { index: PRODUCT, len };
                launches.push(elementwise::gpu::silu_mul(self.cx, gate, up, (product, len))?);
                let dst = (Resource::Output(0), len);
                launches.push(elementwise::gpu::add(self.cx, product, Resource::Input(*residual), dst)?);
            }
        }
        Ok(())
    }

    fn matrix(&self, index: usize) -> Result<usize> {
        self.inputs.matrices.get(index).copied().ok_or_else(|| Error::internal(format!("there is no matrix {index}")))
    }

    /// Whether the tokens are too many to decode the weights for each tile anew.
    fn many(&self) -> bool {
        self.tokens > self.cx.caps.few_tokens
    }

    /// Whether any matrix is stored as codes.
    fn any_coded(&self) -> Result<bool> {
        let layouts = self.inputs.matrices.iter().map(|matrix| Ok(self.cx.input(*matrix)?.weight()?.layout));
        Ok(layouts.collect::<Result<Vec<_>>>()?.iter().any(|layout| matches!(layout, PackedLayout::Coded { .. })))
    }

    fn kind(&self, layout: PackedLayout) -> Kind {
        let coded = matches!(layout, PackedLayout::Coded { .. });
        match (self.many(), coded) {
            (true, true) if self.bytes.is_some() => Kind::MatmulInt8,
            (true, _) => Kind::Matmul,
            (false, true) if self.tokens == 1 && self.cx.caps.int8 => Kind::MatvecInt8,
            (false, _) => Kind::Matvec,
        }
    }

    fn launch(&self, product: &Product<'_>, launches: &mut Vec<Launch>) -> Result<()> {
        let layout = self.cx.input(self.matrix(product.matrix)?)?.weight()?.layout;
        let kind = self.kind(layout);
        let tiles = tiles(&product.rows, product.gated);
        let walk = Walk::new(&self.cx.caps, tiles, product.gated, self.columns, self.bytes.is_some());
        let file = match kind {
            Kind::Matmul => matmul::file(&self.cx.caps),
            Kind::MatmulInt8 => "matmul_int8",
            Kind::MatvecInt8 => walk.file(),
            Kind::Matvec => matvec::file(product.gated),
        };
        let mut kernel = KernelBuilder::new(file, &self.variant(product, kind)?);
        self.inputs(&mut kernel, product)?;
        self.activations(&mut kernel, kind);
        kernel.u32("TOKENS", self.tokens).u32("TILES", tiles);
        if product.gated {
            kernel.part("lib/silu_value");
        }
        if self.many() {
            return matmul::launches(self, kernel, (product, tiles, layout), launches);
        }
        self.stores(&mut kernel, product)?;
        launches.push(match kind {
            Kind::MatvecInt8 => {
                kernel.bytes_products(layout);
                walk.launch(self, &mut kernel, tiles)?
            }
            _ => matvec::launch(self, &mut kernel, tiles)?,
        });
        Ok(())
    }

    fn variant(&self, product: &Product<'_>, kind: Kind) -> Result<String> {
        let layout = self.cx.input(self.matrix(product.matrix)?)?.weight()?.layout;
        let mut name = layout.name();
        for (used, word) in [
            (product.gated, " gated"),
            (self.norm.is_some(), " norm"),
            (!self.columns.is_multiple_of(32), " padded"),
            (matches!(kind, Kind::Matmul) && self.cx.caps.f16, " f16"),
        ] {
            if used {
                name.push_str(word);
            }
        }
        Ok(name + &self.stores_name(product))
    }

    /// What becomes of a product, in the kernel's name.
    fn stores_name(&self, product: &Product<'_>) -> String {
        let words = [
            (self.op.bias, " bias"),
            (product.residual, " residual"),
            (product.outputs.len() == 2, " x2"),
            (product.outputs.len() == 3, " x3"),
        ];
        words.iter().filter(|(used, _)| *used).map(|(_, word)| *word).collect()
    }

    fn inputs(&self, kernel: &mut KernelBuilder, product: &Product<'_>) -> Result<()> {
        let matrix = self.matrix(product.matrix)?;
        let layout = self.cx.input(matrix)?.weight()?.layout;
        kernel.u32("K", self.columns);
        kernel.weights(matrix, product.part, layout, self.columns);
        if product.rows.len() > 1 {
            let row = layout.plane_bytes(4, self.columns).iter().sum::<usize>() / 4;
            kernel.reads_weights((product.rows.iter().sum::<usize>() * row) as u64);
        }
        self.norm(kernel)
    }

    /// The norm that a kernel applies itself, if any.
    fn norm(&self, kernel: &mut KernelBuilder) -> Result<()> {
        kernel.bool("NORM", self.norm.is_some()).f32("EPS", self.norm.map_or(0.0, |(_, eps)| eps));
        match self.norm {
            Some((weight, _)) => {
                kernel.u32("NORM_AT_4", self.cx.input(weight)?.vector_at() / 4);
                kernel.read("norm", "vec4<f32>", Resource::Input(weight)).part("lib/norm");
            }
            None => {
                kernel.part("lib/norm_absent");
            }
        }
        Ok(())
    }

    fn bias(&self, kernel: &mut KernelBuilder, product: &Product<'_>) -> Result<()> {
        match self.inputs.biases.get(product.matrix) {
            Some(bias) => {
                kernel.u32("BIAS_AT", self.cx.input(*bias)?.vector_at() + product.part.1.first_row);
                kernel.read("bias", "f32", Resource::Input(*bias)).part("lib/bias");
            }
            None => {
                kernel.part("lib/bias_absent");
            }
        }
        Ok(())
    }

    fn activations(&self, kernel: &mut KernelBuilder, kind: Kind) {
        match (kind, self.bytes) {
            (Kind::MatmulInt8 | Kind::MatvecInt8, Some(bytes)) => kernel.read("x", "vec4<u32>", bytes),
            _ if self.columns.is_multiple_of(32) => kernel.read("x", "vec4<f32>", self.x).part("lib/x_exact"),
            _ => kernel.read("x", "f32", self.x).part("lib/x_padded"),
        };
    }

    /// What becomes of a product.
    fn stores(&self, kernel: &mut KernelBuilder, product: &Product<'_>) -> Result<()> {
        self.bias(kernel, product)?;
        for (i, output) in product.outputs.iter().enumerate() {
            kernel.write(["dst_0", "dst_1", "dst_2"][i.min(2)], "f32", *output);
        }
        let mut end = 0;
        for (i, rows) in product.rows.iter().enumerate().take(product.outputs.len()) {
            end += rows.div_ceil(4);
            kernel.u32(&format!("ROWS_{i}"), *rows).u32(&format!("END_{i}"), end);
        }
        match product.outputs.len() {
            1 => {
                kernel.u32("FIRST_0", product.part.1.first_row).part("lib/store_1");
                kernel.u32("WIDTH_0", self.cx.input(self.matrix(product.matrix)?)?.rows());
                match self.inputs.residual.filter(|_| product.residual) {
                    Some(residual) => {
                        kernel.read("residual", "f32", Resource::Input(*residual)).part("lib/residual");
                    }
                    None => {
                        kernel.part("lib/residual_absent");
                    }
                }
            }
            2 => {
                kernel.part("lib/store_2");
            }
            _ => {
                kernel.part("lib/store_3");
            }
        }
        Ok(())
    }
}

/// Tiles that a dispatch's grid covers: those of the first matrix when a second one goes along with it.
fn tiles(rows: &[usize], gated: bool) -> usize {
    let counted = if gated { 1 } else { rows.len() };
    rows.iter().take(counted).map(|rows| rows.div_ceil(4)).sum()
}
