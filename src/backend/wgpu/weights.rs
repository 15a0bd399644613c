//! Where the weights lie on the device, and the way there. Matrices that one operation multiplies and vectors that
//! it reads together share a part of a buffer, so that one binding reaches them.

use super::device::{Gpu, rounded};
use crate::error::{Error, Result};
use crate::graph::{Graph, ValueId};
use crate::quant::{BlockFormat, PackedLayout, PackedRows, pack_rows_as};
use crate::shader::{WeightOperand, WeightPart, device_columns, device_planes};

/// A part of a buffer, which one binding reaches whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spec {
    layout: PackedLayout,
    /// Elements of vectors, tiles of matrices.
    units: usize,
    /// Device columns; 0 for vectors.
    columns: usize,
}

/// Where each weight goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Placement {
    operands: Vec<Option<WeightOperand>>,
    specs: Vec<Spec>,
}

/// Bytes at whose multiples a binding may start (`minStorageBufferOffsetAlignment`).
const ALIGNMENT: u64 = 256;
/// What buffers hold at most, but for a larger part, which has one of its own. In buffers of their own the parts would leave
/// a piece of a page empty each, and a GPU finds pages of some 4 GB fast (docs/performance.md).
const BUFFER_BYTES: u64 = 256 << 20;

/// Lays parts of these sizes one after the other into buffers of at most `limit` bytes: the buffer of each and where it
/// starts there, and the sizes of the buffers.
fn lay_out(parts: impl Iterator<Item = u64>, limit: u64) -> (Vec<(usize, u64)>, Vec<u64>) {
    let mut buffers: Vec<u64> = Vec::new();
    let mut places = Vec::new();
    for bytes in parts {
        let place = match buffers.last() {
            Some(used) if used + bytes <= limit => (buffers.len() - 1, *used),
            _ => {
                buffers.push(0);
                (buffers.len() - 1, 0)
            }
        };
        buffers[place.0] = (place.1 + bytes).next_multiple_of(ALIGNMENT);
        places.push(place);
    }
    (places, buffers)
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
    /// Places the weights of `graph` into parts of buffers, each of at most `limit` bytes.
    pub fn new(graph: &Graph, layouts: &[PackedLayout], limit: u64) -> Result<Self> {
        if layouts.len() != graph.weights.len() {
            return Err(Error::internal("expected a layout for each weight"));
        }
        let mut placement = Self { operands: vec![None; graph.weights.len()], specs: Vec::new() };
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
        self.specs.iter().map(|spec| rounded(spec.bytes()).next_multiple_of(ALIGNMENT)).sum()
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
        let buffer = self.specs.len();
        let mut at = 0;
        for &index in run {
            let weight = &graph.weights[index];
            let part = WeightPart { buffer, buffer_tiles: whole.units, at, first_row: 0, rows: weight.rows };
            at += units(graph, index);
            self.operands[index] = Some(WeightOperand { layout, parts: vec![part] });
        }
        self.specs.push(whole);
        Ok(())
    }

    /// Splits one matrix by rows into as few parts as can be.
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
                buffer: self.specs.len(),
                buffer_tiles: units,
                at: 0,
                first_row: first * 4,
                rows: (units * 4).min(weight.rows - first * 4),
            };
            self.specs.push(of_tiles(units));
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

/// The part that holds a run of weights.
fn spec(graph: &Graph, layouts: &[PackedLayout], run: &[usize]) -> Spec {
    let first = run.first().copied().unwrap_or_default();
    let (weight, layout) = (&graph.weights[first], layouts[first]);
    let columns = if weight.vector { 0 } else { device_columns(layout, weight.columns) };
    Spec { layout, units: run.iter().map(|index| units(graph, *index)).sum(), columns }
}

/// The weights on the device.
pub struct Weights {
    operands: Vec<WeightOperand>,
    parts: Vec<Part>,
    /// Bytes of all buffers.
    pub bytes: u64,
}

/// A part of a buffer and what it holds.
struct Part {
    buffer: wgpu::Buffer,
    offset: u64,
    spec: Spec,
}

impl Part {
    fn binding(&self) -> wgpu::BufferBinding<'_> {
        let size = wgpu::BufferSize::new(rounded(self.spec.bytes()));
        wgpu::BufferBinding { buffer: &self.buffer, offset: self.offset, size }
    }
}

impl Weights {
    /// Makes the buffers, zeroed.
    pub fn new(gpu: &mut Gpu, placement: Placement, operands: Vec<WeightOperand>) -> Result<Self> {
        let limit = BUFFER_BYTES.min(gpu.buffer_bytes);
        let (places, sizes) = lay_out(placement.specs.iter().map(|spec| rounded(spec.bytes())), limit);
        let bytes = sizes.iter().sum();
        let make = |bytes| gpu.buffer("weights", bytes, wgpu::BufferUsages::empty());
        let buffers = sizes.into_iter().map(make).collect::<Result<Vec<_>>>()?;
        let part =
            |(spec, (buffer, offset)): (Spec, (usize, u64))| Part { buffer: buffers[buffer].clone(), offset, spec };
        Ok(Self { operands, parts: placement.specs.into_iter().zip(places).map(part).collect(), bytes })
    }

    /// How a weight lies in memory.
    pub fn operand(&self, weight: usize) -> Result<&WeightOperand> {
        self.operands.get(weight).ok_or_else(|| Error::internal(format!("there is no weight {weight}")))
    }

    /// What reaches each part, and its bytes.
    pub fn parts(&self) -> impl Iterator<Item = (wgpu::BufferBinding<'_>, u64)> {
        self.parts.iter().map(|part| (part.binding(), part.spec.bytes()))
    }

    /// What reaches one part of a weight.
    pub fn binding(&self, weight: usize, part: usize) -> Result<wgpu::BufferBinding<'_>> {
        Ok(self.part(weight, part)?.binding())
    }

    fn part(&self, weight: usize, part: usize) -> Result<&Part> {
        let part = self.operand(weight)?.parts.get(part).and_then(|part| self.parts.get(part.buffer));
        part.ok_or_else(|| Error::internal(format!("there is no such part of {weight}")))
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
        if self.part(weight, 0)?.spec.columns == 0 {
            let mut values = vec![0.0; columns];
            format.decode(bytes, &mut values)?;
            return self.write_vector(gpu, weight, &values);
        }
        self.write_packed(gpu, weight, first_row, &pack_rows_as(operand.layout, format, bytes, rows, columns)?)
    }

    /// Uploads a vector.
    pub fn write_vector(&self, gpu: &mut Gpu, weight: usize, values: &[f32]) -> Result<()> {
        let place = self.operand(weight)?.parts.first().ok_or_else(|| Error::internal("a vector has no part"))?;
        let Part { buffer, offset, .. } = self.part(weight, 0)?;
        gpu.write(buffer, offset + place.at as u64 * 4, bytemuck::cast_slice(values));
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
                let Part { buffer, offset, .. } = self.part(weight, index)?;
                let at = start as u64 * 16 + ((part.at + from - part_first) * words) as u64 * 4;
                gpu.write(buffer, offset + at, slice);
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

#[cfg(test)]
mod tests {
    use super::lay_out;

    #[test]
    fn parts_lie_one_after_the_other_and_large_ones_alone() {
        let (places, sizes) = lay_out([100, 300, 200, 2000, 256, 1].into_iter(), 1024);
        assert_eq!(places, [(0, 0), (0, 256), (0, 768), (1, 0), (2, 0), (2, 256)]);
        assert_eq!(sizes, [1024, 2048, 512]);
        assert_eq!(lay_out(std::iter::empty(), 1024), (vec![], vec![]));
    }
}
