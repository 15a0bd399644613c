//! The weights of a model in memory: matrices packed as they come, vectors as floats.

use crate::error::{Context, Error, Result};
use crate::graph::{Graph, Weight};
use crate::kernels::{Compute, CpuInput, CpuMatrix, CpuMatrixBuilder};
use crate::quant::{BlockFormat, PackedLayout, pack_rows_as};

/// One weight on its way into memory, and there.
enum Stored {
    /// Rows still come.
    Packing(CpuMatrixBuilder),
    /// A matrix.
    Matrix(CpuMatrix),
    /// A vector; empty until it comes.
    Vector(Vec<f32>),
    /// Taken out while it changes.
    Nothing,
}

/// Weights in the order of the graph's.
pub(super) struct Weights(Vec<Stored>);

impl Weights {
    /// Reserves what the graph's weights take in `layouts`.
    pub(super) fn new(graph: &Graph, layouts: &[PackedLayout]) -> Result<Self> {
        if layouts.len() != graph.weights.len() {
            return Err(Error::internal(format!("expected {} layouts, found {}", graph.weights.len(), layouts.len())));
        }
        let stored = graph.weights.iter().zip(layouts).map(|(weight, &layout)| {
            if weight.vector {
                return Ok(Stored::Vector(Vec::new()));
            }
            CpuMatrixBuilder::new(layout, weight.rows, weight.columns).map(Stored::Packing).at(|| weight.name.clone())
        });
        Ok(Self(stored.collect::<Result<_>>()?))
    }

    /// Takes the rows `first_row..` of a weight in the file's format.
    pub(super) fn write(
        &mut self,
        index: usize,
        spec: &Weight,
        (first_row, format): (usize, &'static BlockFormat),
        bytes: &[u8],
    ) -> Result<()> {
        match self.0.get_mut(index) {
            Some(Stored::Packing(builder)) => {
                let row_bytes = spec.columns / format.block_len.max(1) * format.block_bytes;
                let rows = bytes.len().checked_div(row_bytes).unwrap_or(0);
                if first_row != builder.rows() {
                    return Err(Error::internal(format!("expected row {} next, found {first_row}", builder.rows())));
                }
                builder.push(&pack_rows_as(builder.layout(), format, bytes, rows, spec.columns)?)
            }
            Some(Stored::Vector(values)) => {
                let len = bytes.len() / format.block_bytes.max(1) * format.block_len;
                if len != spec.columns || !bytes.len().is_multiple_of(format.block_bytes.max(1)) {
                    return Err(Error::internal(format!("expected {} values, found {len}", spec.columns)));
                }
                values.resize(len, 0.0);
                (format.dequantize)(bytes, values);
                Ok(())
            }
            _ => Err(Error::internal("a weight was written after loading ended")),
        }
    }

    /// Closes the matrices; fails when rows are missing.
    pub(super) fn finish(&mut self, graph: &Graph) -> Result<()> {
        for (stored, spec) in self.0.iter_mut().zip(&graph.weights) {
            let finished = match std::mem::replace(stored, Stored::Nothing) {
                Stored::Packing(builder) => builder.finish().map(Stored::Matrix),
                Stored::Vector(values) if values.is_empty() => Err(Error::internal("the vector was not written")),
                other => Ok(other),
            };
            *stored = finished.at(|| spec.name.clone())?;
        }
        Ok(())
    }

    /// Sums the rows of every matrix of codes, for activations with a zero point.
    pub(super) fn sum_rows(&mut self, compute: &Compute) -> Result<()> {
        for stored in &mut self.0 {
            if let Stored::Matrix(matrix) = stored
                && matrix.is_coded()
            {
                let sums = compute.row_sums(matrix)?;
                matrix.set_row_sums(sums);
            }
        }
        Ok(())
    }

    /// A weight as an input of an operation.
    pub(super) fn input(&self, index: usize) -> Result<CpuInput<'_>> {
        match self.0.get(index) {
            Some(Stored::Matrix(matrix)) => Ok(CpuInput::Matrix(matrix)),
            Some(Stored::Vector(values)) => Ok(CpuInput::F32(values)),
            _ => Err(Error::internal(format!("weight {index} is not loaded"))),
        }
    }

    /// The smallest matrix of each layout in use.
    pub(super) fn one_of_each_layout(&self) -> Vec<&CpuMatrix> {
        let mut found: Vec<&CpuMatrix> = Vec::new();
        for stored in &self.0 {
            let Stored::Matrix(matrix) = stored else { continue };
            match found.iter_mut().find(|other| other.layout() == matrix.layout()) {
                Some(other) if other.bytes() <= matrix.bytes() => {}
                Some(other) => *other = matrix,
                None => found.push(matrix),
            }
        }
        found
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let bytes = self.0.iter().map(|stored| match stored {
            Stored::Matrix(matrix) => matrix.bytes(),
            Stored::Packing(builder) => builder.bytes(),
            Stored::Vector(values) => 4 * values.capacity(),
            Stored::Nothing => 0,
        });
        bytes.sum()
    }
}
