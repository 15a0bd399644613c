//! The kernels of one instruction set as a table of functions, and which tables this processor can run.

#![allow(unsafe_code)]

use super::activations::{QuantizeRow, Wanted};
use super::attention::{self, Attention};
use super::elementwise::{self, Unary};
use super::isa;
use super::matmul::{self, CodedShare, DenseShare};
#[cfg(target_arch = "x86_64")]
use super::matvec;
use super::quantize::quantize_row;
use crate::quant::PackedLayout;

/// Of a row, its (weight, bias), epsilon and destination.
type LayerNorm = unsafe fn(&[f32], (&[f32], &[f32]), f32, &mut [f32]);

/// The kernels of one instruction set. Each function has the contract of the generic one it is made from, beside
/// needing the processor to have the instruction set: a table is reachable only where that was checked.
pub struct Kernels {
    name: &'static str,
    /// Codes of at least so many bits meet activations in 16 bits.
    wide_from: usize,
    /// Whether products of symmetric codes in groups of 16 take the sums of 8-bit activations by pairs.
    centres: bool,
    pub(super) coded: unsafe fn(&CodedShare<'_>),
    pub(super) dense: unsafe fn(&DenseShare<'_>),
    pub(super) attention: unsafe fn(&Attention<'_>, usize, *mut f32),
    pub(super) quantize: unsafe fn(QuantizeRow<'_>),
    pub(super) unary: unsafe fn(Unary, &mut [f32]),
    pub(super) add: unsafe fn(&mut [f32], &[f32]),
    pub(super) mul: unsafe fn(&mut [f32], &[f32]),
    pub(super) rms_norm: unsafe fn(&[f32], &[f32], f32, &mut [f32]),
    pub(super) layer_norm: LayerNorm,
    pub(super) softmax: unsafe fn(&[f32], &mut [f32]),
    pub(super) rotate: unsafe fn(&mut [f32], &[f32], bool),
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kernels").field(&self.name).finish()
    }
}

/// Makes a table: instantiates every algorithm for `$isa` in functions compiled with `$feature`. `$row` multiplies single
/// activation rows where the instruction set has a better way for these.
macro_rules! kernel_table {
    ($table:ident, $name:literal, $isa:ty $(, features: $feature:literal)? $(, row: $row:path)?) => {
        static $table: Kernels = {
            $(#[target_feature(enable = $feature)])?
            unsafe fn coded(share: &CodedShare<'_>) {
                $(
                    if share.x.rows() == 1 {
                        // SAFETY: the same contract.
                        return unsafe { $row(share) };
                    }
                )?
                // SAFETY: the same contract.
                unsafe { matmul::coded::<$isa>(share) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn dense(share: &DenseShare<'_>) {
                // SAFETY: the same contract.
                unsafe { matmul::dense::<$isa>(share) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn attend(job: &Attention<'_>, chunk: usize, dst: *mut f32) {
                // SAFETY: the same contract.
                unsafe { attention::attention::<$isa>(job, chunk, dst) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn quantize(job: QuantizeRow<'_>) {
                // SAFETY: the same contract.
                unsafe { quantize_row::<$isa>(job) };
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn unary(op: Unary, values: &mut [f32]) {
                elementwise::unary(op, values);
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn add(dst: &mut [f32], other: &[f32]) {
                elementwise::add(dst, other);
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn mul(dst: &mut [f32], other: &[f32]) {
                elementwise::mul(dst, other);
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn rms_norm(x: &[f32], weight: &[f32], eps: f32, dst: &mut [f32]) {
                elementwise::rms_norm(x, weight, eps, dst);
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn layer_norm(x: &[f32], affine: (&[f32], &[f32]), eps: f32, dst: &mut [f32]) {
                elementwise::layer_norm(x, affine, eps, dst);
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn softmax(x: &[f32], dst: &mut [f32]) {
                elementwise::softmax(x, dst);
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn rotate(head: &mut [f32], turns: &[f32], interleaved: bool) {
                elementwise::rotate(head, turns, interleaved);
            }
            Kernels {
                name: $name,
                wide_from: <$isa as isa::Isa>::WIDE_FROM,
                centres: <$isa as isa::Isa>::CENTRES,
                coded,
                dense,
                attention: attend,
                quantize,
                unary,
                add,
                mul,
                rms_norm,
                layer_norm,
                softmax,
                rotate,
            }
        };
    };
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
kernel_table!(SCALAR, "scalar", isa::Scalar);
#[cfg(target_arch = "x86_64")]
kernel_table!(AVX2, "avx2", isa::Avx2<false>, features: "avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
kernel_table!(AVX_VNNI, "avx-vnni", isa::Avx2<true>, features: "avx2,fma,f16c,avxvnni");
#[cfg(target_arch = "x86_64")]
kernel_table!(
    AVX512, "avx512-vnni", isa::Avx512,
    features: "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni",
    row: matvec::coded_row
);
#[cfg(target_arch = "aarch64")]
kernel_table!(NEON, "neon-dotprod", isa::Neon, features: "neon,dotprod");
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
kernel_table!(SIMD128, "relaxed-simd", isa::Simd128<false>);
/// Only products of coded weights differ.
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
static SIMD128_PAIRS: Kernels = {
    unsafe fn coded(share: &CodedShare<'_>) {
        // SAFETY: the same contract.
        unsafe { matmul::coded::<isa::Simd128<true>>(share) }
    }
    Kernels { name: "relaxed-simd-pairs", centres: <isa::Simd128<true> as isa::Isa>::CENTRES, coded, ..SIMD128 }
};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128", not(target_feature = "relaxed-simd")))]
kernel_table!(SIMD128, "simd128", isa::Simd128<false>);
/// Only products, of which the self-test of a backend may find the others wrong: all else would make the modules larger
/// for nothing.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
static SCALAR: Kernels = {
    unsafe fn coded(share: &CodedShare<'_>) {
        // SAFETY: the same contract.
        unsafe { matmul::coded::<isa::Scalar>(share) }
    }
    unsafe fn dense(share: &DenseShare<'_>) {
        // SAFETY: the same contract.
        unsafe { matmul::dense::<isa::Scalar>(share) }
    }
    unsafe fn quantize(job: QuantizeRow<'_>) {
        // SAFETY: the same contract.
        unsafe { quantize_row::<isa::Scalar>(job) };
    }
    let (wide_from, centres) = (<isa::Scalar as isa::Isa>::WIDE_FROM, <isa::Scalar as isa::Isa>::CENTRES);
    Kernels { name: "scalar", wide_from, centres, coded, dense, quantize, ..SIMD128 }
};

impl Kernels {
    /// Name of the instruction set, for logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Bits of the activations that weights of a layout are multiplied with: integers of 8 or 16, or floats of 32.
    #[must_use]
    pub fn activation_bits(&self, layout: PackedLayout) -> usize {
        match layout {
            PackedLayout::Coded { codes, .. } if codes.bits() >= self.wide_from => 16,
            PackedLayout::Coded { .. } => 8,
            PackedLayout::F32 | PackedLayout::F16 => 32,
        }
    }

    /// The forms of activations that weights of a layout are multiplied with; none for floats.
    pub(super) fn wanted(&self, layout: PackedLayout) -> Wanted {
        let bits = self.activation_bits(layout);
        let centred = matches!(layout, PackedLayout::Coded { group: 16, affine: false, .. });
        Wanted { narrow: bits == 8, wide: bits == 16, pairs: bits == 8 && centred && self.centres }
    }

    /// The best kernels of this processor.
    #[must_use]
    pub fn best() -> &'static Self {
        Self::available().first().copied().unwrap_or(&SCALAR)
    }

    /// Every table this processor runs, best first.
    #[must_use]
    pub fn available() -> Vec<&'static Self> {
        let mut tables = simd_tables();
        tables.push(&SCALAR);
        tables
    }
}

#[cfg(target_arch = "x86_64")]
fn simd_tables() -> Vec<&'static Kernels> {
    let mut tables = Vec::new();
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vnni");
    if avx2 && avx512 {
        tables.push(&AVX512);
    }
    if avx2 && is_x86_feature_detected!("avxvnni") {
        tables.push(&AVX_VNNI);
    }
    if avx2 {
        tables.push(&AVX2);
    }
    tables
}

#[cfg(target_arch = "aarch64")]
fn simd_tables() -> Vec<&'static Kernels> {
    if std::arch::is_aarch64_feature_detected!("dotprod") { vec![&NEON] } else { Vec::new() }
}

#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
fn simd_tables() -> Vec<&'static Kernels> {
    isa::hide_constants();
    if isa::sums_by_pairs() { vec![&SIMD128_PAIRS, &SIMD128] } else { vec![&SIMD128] }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128", not(target_feature = "relaxed-simd")))]
fn simd_tables() -> Vec<&'static Kernels> {
    isa::hide_constants();
    vec![&SIMD128]
}

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
)))]
fn simd_tables() -> Vec<&'static Kernels> {
    Vec::new()
}
