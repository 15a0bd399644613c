//! Where the weights lie on the device, and the way there. Matrices that one operation multiplies and vectors that
//! it reads together share a buffer, so that one binding reaches them.

use super::device::Gpu;
use crate::error::{Error, Result};
use crate::graph::{Graph, ValueId};
use crate::quant::{BlockFormat, PackedLayout, PackedRows, pack_rows_as};
use crate::shader::{WeightOperand, WeightPart, device_columns, device_planes};

/// A buffer to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spec {
    layout: PackedLayout,
    /// Elements of a vector buffer, tiles of a matrix buffer.
    units: usize,
    /// Device columns; 0 for vectors.
    columns: usize,
}

/// Where each weight goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Placement {
    operands: Vec<Option<WeightOperand>>,
    buffers: Vec<Spec>,
}

impl Spec {
    fn bytes(&self) -> u64 {
        if self.columns == 0 {
            return self.units as u64 * 4;
        }
        let [.., end] = device_planes(self.layout, self.units, self.columns);
        end as u64 * 16
    }
}

impl Placement {
    /// Places the weights of `graph` into buffers of at most `limit` bytes.
    pub fn new(graph: &Graph, layouts: &[PackedLayout], limit: u64) -> Result<Self> {
        if layouts.len() != graph.weights.len() {
            return Err(Error::internal("expected a layout for each weight"));
        }
        let mut placement = Self { operands: vec![None; graph.weights.len()], buffers: Vec::new() };
        for node in &graph.nodes {
            let mut run: Vec<usize> = Vec::new();
            for input in &node.inputs {
                let weight = placement.unplaced(graph, *input);
                let fits = weight.is_some_and(|weight| placement.adjoins(graph, layouts, &run, weight, limit));
                if !fits {
                    placement.place(graph, layouts, &std::mem::take(&mut run), limit)?;
                }
                run.extend(weight.filter(|weight| !run.contains(weight)));
            }
            placement.place(graph, layouts, &run, limit)?;
        }
        for weight in 0..graph.weights.len() {
            if placement.operands[weight].is_none() {
                placement.place(graph, layouts, &[weight], limit)?;
            }
        }
        Ok(placement)
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.buffers.iter().map(Spec::bytes).sum()
    }

    /// How each weight lies in memory.
    pub fn operands(&self) -> Result<Vec<WeightOperand>> {
        let operands = self.operands.iter().cloned().collect::<Option<Vec<_>>>();
        operands.ok_or_else(|| Error::internal("a weight has no place"))
    }

    fn unplaced(&self, graph: &Graph, value: ValueId) -> Option<usize> {
        graph.weight_of(value).filter(|weight| self.operands.get(*weight).is_some_and(Option::is_none))
    }

    /// Whether `weight` can share the buffer of `run`.
    fn adjoins(&self, graph: &Graph, layouts: &[PackedLayout], run: &[usize], weight: usize, limit: u64) -> bool {
        let Some(&last) = run.last() else { return true };
        let (a, b) = (&graph.weights[last], &graph.weights[weight]);
        let alike = a.vector == b.vector && layouts[last] == layouts[weight] && (a.vector || a.columns == b.columns);
        let mut all = run.to_vec();
        all.push(weight);
        alike && spec(graph, layouts, &all).bytes() <= limit
    }

    fn place(&mut self, graph: &Graph, layouts: &[PackedLayout], run: &[usize], limit: u64) -> Result<()> {
        let Some(&first) = run.first() else { return Ok(()) };
        let layout = layouts[first];
        let whole = spec(graph, layouts, run);
        if whole.bytes() > limit {
            return self.place_split(graph, layout, first, limit);
        }
        let buffer = self.buffers.len();
        let mut at = 0;
        for &index in run {
            let weight = &graph.weights[index];
            let part = WeightPart { buffer, buffer_tiles: whole.units, at, first_row: 0, rows: weight.rows };
            at += units(graph, index);
            self.operands[index] = Some(WeightOperand { layout, parts: vec![part] });
        }
        self.buffers.push(whole);
        Ok(())
    }

    /// Splits one matrix by rows over as few buffers as can be.
    fn place_split(&mut self, graph: &Graph, layout: PackedLayout, index: usize, limit: u64) -> Result<()> {
        let weight = &graph.weights[index];
        let columns = device_columns(layout, weight.columns);
        let of_tiles = |units: usize| Spec { layout, units, columns };
        // An even count keeps every plane a whole number of 16-byte words.
        let most = (limit / of_tiles(2).bytes().max(1)) as usize * 2;
        if weight.vector || most == 0 {
            return Err(Error::limits(format!(
                "expected rows of at most {limit} bytes, the device's limit, found {} columns",
                weight.columns
            ))
            .at(weight.name.clone()));
        }
        let tiles = weight.rows.div_ceil(4);
        let share = tiles.div_ceil(tiles.div_ceil(most)).next_multiple_of(2).min(most);
        let parts = (0..tiles).step_by(share).map(|first| {
            let units = share.min(tiles - first);
            let part = WeightPart {
                buffer: self.buffers.len(),
                buffer_tiles: units,
                at: 0,
                first_row: first * 4,
                rows: (units * 4).min(weight.rows - first * 4),
            };
            self.buffers.push(of_tiles(units));
            part
        });
        let parts = parts.collect();
        self.operands[index] = Some(WeightOperand { layout, parts });
        Ok(())
    }
}

/// Tiles of a matrix, or the elements of a vector rounded up to whole 16-byte words.
fn units(graph: &Graph, index: usize) -> usize {
    let weight = &graph.weights[index];
    if weight.vector { weight.columns.next_multiple_of(4) } else { weight.rows.div_ceil(4) }
}

/// The buffer that holds a run of weights.
fn spec(graph: &Graph, layouts: &[PackedLayout], run: &[usize]) -> Spec {
    let first = run.first().copied().unwrap_or_default();
    let (weight, layout) = (&graph.weights[first], layouts[first]);
    let columns = if weight.vector { 0 } else { device_columns(layout, weight.columns) };
    Spec { layout, units: run.iter().map(|index| units(graph, *index)).sum(), columns }
}

/// The weights on the device.
pub struct Weights {
    operands: Vec<WeightOperand>,
    buffers: Vec<(wgpu::Buffer, Spec)>,
    /// Bytes of all buffers.
    pub bytes: u64,
}

impl Weights {
    /// Makes the buffers, zeroed.
    pub fn new(gpu: &mut Gpu, placement: Placement, operands: Vec<WeightOperand>) -> Result<Self> {
        let mut buffers = Vec::with_capacity(placement.buffers.len());
        let mut bytes = 0;
        for spec in placement.buffers {
            bytes += spec.bytes();
            buffers.push((gpu.buffer("weights", spec.bytes(), wgpu::BufferUsages::empty())?, spec));
        }
        Ok(Self { operands, buffers, bytes })
    }

    /// How a weight lies in memory.
    pub fn operand(&self, weight: usize) -> Result<&WeightOperand> {
        self.operands.get(weight).ok_or_else(|| Error::internal(format!("there is no weight {weight}")))
    }

    /// Every buffer.
    pub fn buffers(&self) -> impl Iterator<Item = &wgpu::Buffer> {
        self.buffers.iter().map(|(buffer, _)| buffer)
    }

    /// The buffer of one part of a weight.
    pub fn buffer(&self, weight: usize, part: usize) -> Result<&wgpu::Buffer> {
        let part = self.operand(weight)?.parts.get(part);
        let buffer = part.and_then(|part| self.buffers.get(part.buffer));
        buffer.map(|(buffer, _)| buffer).ok_or_else(|| Error::internal(format!("there is no such part of {weight}")))
    }

    /// Packs whole rows of a file and uploads them. Rows start at a multiple of 4.
    pub fn write(
        &self,
        gpu: &mut Gpu,
        (weight, first_row): (usize, usize),
        (rows, columns): (usize, usize),
        (format, bytes): (&BlockFormat, &[u8]),
    ) -> Result<()> {
        let operand = self.operand(weight)?;
        let vector = operand.parts.first().and_then(|part| self.buffers.get(part.buffer)).map(|(_, spec)| spec.columns);
        if vector == Some(0) {
            let mut values = vec![0.0; columns];
            format.decode(bytes, &mut values)?;
            return self.write_vector(gpu, weight, &values);
        }
        self.write_packed(gpu, weight, first_row, &pack_rows_as(operand.layout, format, bytes, rows, columns)?)
    }

    /// Uploads a vector.
    pub fn write_vector(&self, gpu: &mut Gpu, weight: usize, values: &[f32]) -> Result<()> {
        let part = self.operand(weight)?.parts.first().ok_or_else(|| Error::internal("a vector has no part"))?;
        gpu.write(self.buffer(weight, 0)?, part.at as u64 * 4, bytemuck::cast_slice(values));
        Ok(())
    }

    /// Uploads packed rows.
    pub fn write_packed(&self, gpu: &mut Gpu, weight: usize, first_row: usize, rows: &PackedRows) -> Result<()> {
        let columns = device_columns(rows.layout, rows.columns);
        let widened;
        let rows = match rows.layout {
            PackedLayout::Coded { .. } => rows,
            _ if rows.layout.padded_columns(rows.columns) == columns => rows,
            _ => {
                widened = widen(rows, columns);
                &widened
            }
        };
        // Words of one tile in each plane.
        let words = rows.layout.plane_bytes(4, columns).map(|bytes| bytes / 4);
        let (first, end) = (first_row / 4, (first_row + rows.rows).div_ceil(4));
        for (index, part) in self.operand(weight)?.parts.iter().enumerate() {
            let part_first = part.first_row / 4;
            let (from, to) = (first.max(part_first), end.min(part_first + part.rows.div_ceil(4)));
            if from >= to {
                continue;
            }
            let planes = device_planes(rows.layout, part.buffer_tiles, columns);
            for ((plane, words), start) in [&rows.low, &rows.high, &rows.scales].into_iter().zip(words).zip(planes) {
                let last = ((to - first) * words).min(plane.len());
                let Some(slice) = plane.get((from - first) * words..last) else { continue };
                let offset = start as u64 * 16 + ((part.at + from - part_first) * words) as u64 * 4;
                gpu.write(self.buffer(weight, index)?, offset, slice);
            }
        }
        Ok(())
    }
}

/// Dense rows with zeros up to `columns` columns.
fn widen(rows: &PackedRows, columns: usize) -> PackedRows {
    let per_word = if rows.layout == PackedLayout::F16 { 2 } else { 1 };
    let (from, to) = (rows.layout.padded_columns(rows.columns) / per_word, columns / per_word);
    let mut low = vec![0; rows.rows * to];
    for (to, from) in low.chunks_exact_mut(to.max(1)).zip(rows.low.chunks_exact(from.max(1))) {
        to[..from.len()].copy_from_slice(from);
    }
    PackedRows { low, ..rows.clone() }
}
