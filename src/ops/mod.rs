//! Operators: a folder each, with attributes, shape rule and reference (`mod.rs`), CPU kernel (`cpu.rs`),
//! GPU launches (`gpu.rs`). Never names a file format.

mod attention;
pub mod cases;
mod check;
mod elementwise;
mod embed;
mod linear;
mod rms_norm;
mod rope;
mod take_rows;

pub use attention::{Attention, HeadNorm, Rotary};
pub use elementwise::{Add, Mul, Silu};
pub use embed::Embed;
pub use linear::{Gate, Linear};
pub use rms_norm::RmsNorm;
pub use rope::{Pairs, Rope, RopeScaling, RopeTable};
pub use take_rows::TakeRows;

/// A row of the operator table.
pub struct OpRow {
    /// `Operator::name`.
    pub name: &'static str,
    /// What it computes, for the generated table of operators.
    pub summary: &'static str,
}

/// Every operator.
pub static OPS: &[OpRow] = &[
    OpRow { name: "add", summary: "sum of two tensors of equal shape" },
    OpRow {
        name: "attention",
        summary: "causal grouped-query attention over a key/value cache, with rotary embedding and head norms fused",
    },
    OpRow { name: "embed", summary: "rows of a table by token id" },
    OpRow { name: "linear", summary: "matrix products of one input, with norm, bias, gate and residual fused" },
    OpRow { name: "mul", summary: "product of two tensors of equal shape" },
    OpRow { name: "rms_norm", summary: "root-mean-square normalization of the last axis or of its equal parts" },
    OpRow { name: "rope", summary: "rotary position embedding" },
    OpRow { name: "silu", summary: "x / (1 + exp(-x))" },
    OpRow { name: "take_rows", summary: "the last rows of a step, whose logits are wanted" },
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::{OPS, cases};
    use std::collections::BTreeSet;

    #[test]
    fn the_table_lists_exactly_the_operations_that_have_cases() {
        let listed: BTreeSet<&str> = OPS.iter().map(|row| row.name).collect();
        let tested: BTreeSet<&str> = cases::cases().unwrap().iter().map(|case| case.op.name()).collect();
        assert_eq!(listed, tested);
        assert_eq!(listed.len(), OPS.len(), "an operation has two rows");
    }
}
