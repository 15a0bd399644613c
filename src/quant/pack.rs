//! From rows of file blocks to the packed planes that the kernels read, and the plain inverse that tests trust.
//! Knows no format by name: a format says how its blocks split into codes, the layout where the codes go.

use half::f16;

use super::block::BlockFormat;
use super::packed::{PackedLayout, PackedRows};
use super::quantize::quantize_row;
use crate::error::{Error, Result};

/// Rows whose codes lie together.
const TILE: usize = 4;

/// Packs `rows` whole rows of `columns` elements, given as the file's bytes, into the layout of their format.
///
/// Fails when `columns` is no multiple of the block length, when `bytes` is not exactly those rows, when a scale
/// cannot be written as f16, and when the memory cannot be had.
pub fn pack_rows(format: &BlockFormat, bytes: &[u8], rows: usize, columns: usize) -> Result<PackedRows> {
    let row_bytes = checked_row_bytes(format, bytes.len(), rows, columns)?;
    let mut packed = PackedRows::zeros(format.layout, rows, columns)?;
    if rows == 0 || columns == 0 {
        return Ok(packed);
    }
    match format.layout {
        PackedLayout::F32 => pack_f32(format, bytes, row_bytes, &mut packed),
        PackedLayout::F16 => pack_f16(bytes, row_bytes, &mut packed),
        PackedLayout::Coded { .. } => {
            let unpack =
                format.unpack.ok_or_else(|| Error::internal(format!("{} has no codes to pack", format.name)))?;
            pack_coded(bytes, row_bytes, &mut packed, unpack)?;
        }
    }
    Ok(packed)
}

/// As [`pack_rows`], into `layout`: the one of the format, or another that the rows are quantized to anew.
///
/// Fails as [`pack_rows`] does, for weights that cannot be quantized (not finite, scales beyond f16), and for a layout
/// that weights are not quantized to.
pub fn pack_rows_as(
    layout: PackedLayout,
    format: &BlockFormat,
    bytes: &[u8],
    rows: usize,
    columns: usize,
) -> Result<PackedRows> {
    if layout == format.layout {
        return pack_rows(format, bytes, rows, columns);
    }
    let row_bytes = checked_row_bytes(format, bytes.len(), rows, columns)?;
    let mut packed = PackedRows::zeros(layout, rows, columns)?;
    if rows == 0 || columns == 0 {
        return Ok(packed);
    }
    let mut values = vec![0.0; columns];
    pack_coded(bytes, row_bytes, &mut packed, |bytes, codes, groups| {
        (format.dequantize)(bytes, &mut values);
        quantize_row(layout, &values, codes, groups)
    })?;
    Ok(packed)
}

impl PackedRows {
    /// Planes of zeros for a matrix of `rows` x `columns`; fails when they do not fit this platform's memory.
    pub fn zeros(layout: PackedLayout, rows: usize, columns: usize) -> Result<Self> {
        // The largest plane is at most 4 bytes an element after padding to whole tiles and groups.
        let padded_bytes = (rows as u128 + TILE as u128) * (columns as u128 + 256) * 4;
        if isize::try_from(padded_bytes).is_err() {
            return Err(too_large(rows, columns));
        }
        let [low, high, scales] = layout.plane_bytes(rows, columns);
        let plane = |bytes: usize| -> Result<Vec<u32>> {
            let mut words = Vec::new();
            words.try_reserve_exact(bytes.div_ceil(4)).map_err(|cause| too_large(rows, columns).because(cause))?;
            words.resize(bytes.div_ceil(4), 0);
            Ok(words)
        };
        Ok(Self { layout, rows, columns, low: plane(low)?, high: plane(high)?, scales: plane(scales)? })
    }

    /// Bytes of all planes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.low.len() + self.high.len() + self.scales.len()) * 4
    }
}

fn too_large(rows: usize, columns: usize) -> Error {
    Error::out_of_memory(format!("no memory for the packed weights of a {rows} x {columns} matrix"))
}

fn checked_row_bytes(format: &BlockFormat, bytes: usize, rows: usize, columns: usize) -> Result<usize> {
    if !columns.is_multiple_of(format.block_len) {
        return Err(Error::malformed(format!(
            "expected columns in multiples of {} for {}, found {columns}",
            format.block_len, format.name
        )));
    }
    let row_bytes = (columns / format.block_len).checked_mul(format.block_bytes);
    match row_bytes {
        Some(row_bytes) if row_bytes.checked_mul(rows) == Some(bytes) => Ok(row_bytes),
        _ => Err(Error::malformed(format!(
            "expected the bytes of {rows} rows of {columns} {} elements, found {bytes} bytes",
            format.name
        ))),
    }
}

fn pack_f32(format: &BlockFormat, bytes: &[u8], row_bytes: usize, packed: &mut PackedRows) {
    let mut row = vec![0.0; packed.columns];
    for (bytes, words) in bytes.chunks_exact(row_bytes).zip(packed.low.chunks_exact_mut(packed.columns)) {
        (format.dequantize)(bytes, &mut row);
        for (word, value) in words.iter_mut().zip(&row) {
            *word = value.to_bits();
        }
    }
}

fn pack_f16(bytes: &[u8], row_bytes: usize, packed: &mut PackedRows) {
    for (bytes, words) in bytes.chunks_exact(row_bytes).zip(packed.low.chunks_exact_mut(packed.columns.div_ceil(2))) {
        let (pairs, odd) = bytes.as_chunks::<4>();
        for (word, pair) in words.iter_mut().zip(pairs) {
            *word = u32::from_le_bytes(*pair);
        }
        if let (Some(word), [low, high]) = (words.last_mut(), odd) {
            *word = u32::from(u16::from_le_bytes([*low, *high]));
        }
    }
}

/// Packs rows whose codes, and scale and bias of each group, `split` tells from the bytes of a row.
fn pack_coded(
    bytes: &[u8],
    row_bytes: usize,
    packed: &mut PackedRows,
    mut split: impl FnMut(&[u8], &mut [i8], &mut [(f32, f32)]) -> Result<()>,
) -> Result<()> {
    let PackedLayout::Coded { codes: width, group, affine } = packed.layout else {
        return Err(Error::internal(format!("{} has no codes", packed.layout.name())));
    };
    let padded = packed.layout.padded_columns(packed.columns);
    let (low_bits, high_bits) = width.planes();
    let (low_tile, high_tile) = (padded * TILE * low_bits / 32, (padded * TILE * high_bits / 32).max(1));
    let scale_tile = if affine { padded / group * 4 } else { padded / group * 2 };
    let mut codes = vec![0i8; padded];
    let mut groups = vec![(0.0, 0.0); padded / group];
    for (tile, bytes) in bytes.chunks(row_bytes * TILE).enumerate() {
        for (row, bytes) in bytes.chunks_exact(row_bytes).enumerate() {
            split(bytes, &mut codes, &mut groups)?;
            put_codes(low_bits, 0, &codes, part(&mut packed.low, tile, low_tile), row);
            put_codes(high_bits, low_bits, &codes, part(&mut packed.high, tile, high_tile), row);
            put_scales(affine, &groups, part(&mut packed.scales, tile, scale_tile), row)?;
        }
    }
    Ok(())
}

/// The words of tile `tile` in a plane of `len` words a tile; empty for a plane the layout does not have.
fn part(plane: &mut [u32], tile: usize, len: usize) -> &mut [u32] {
    plane.get_mut(tile * len..).and_then(|rest| rest.get_mut(..len)).unwrap_or_default()
}

/// Writes bits `shift..shift + bits` of a row's codes to its words of a tile.
fn put_codes(bits: usize, shift: usize, codes: &[i8], tile: &mut [u32], row: usize) {
    match bits {
        1 => put_plane::<1, 32>(shift, codes, tile, row),
        2 => put_plane::<2, 16>(shift, codes, tile, row),
        4 => put_plane::<4, 8>(shift, codes, tile, row),
        8 => put_plane::<8, 4>(shift, codes, tile, row),
        _ => {}
    }
}

/// As [`put_codes`] for one width: a word takes `PER_WORD` codes, four side by side in its bytes, the next four above.
fn put_plane<const BITS: usize, const PER_WORD: usize>(shift: usize, codes: &[i8], tile: &mut [u32], row: usize) {
    let mask = 0x0101_0101 * ((1u32 << BITS) - 1);
    let words = tile.as_chunks_mut::<TILE>().0;
    for (words, codes) in words.iter_mut().zip(codes.as_chunks::<PER_WORD>().0) {
        let mut word = 0;
        for (i, four) in codes.as_chunks::<4>().0.iter().enumerate() {
            let four = u32::from_le_bytes(four.map(i8::cast_unsigned));
            word |= (four >> shift & mask) << (BITS * i);
        }
        if let Some(of_row) = words.get_mut(row) {
            *of_row = word;
        }
    }
}

fn put_scales(affine: bool, groups: &[(f32, f32)], tile: &mut [u32], row: usize) -> Result<()> {
    if affine {
        for (words, &(scale, bias)) in tile.as_chunks_mut::<4>().0.iter_mut().zip(groups) {
            if let Some(word) = words.get_mut(row) {
                *word = half_bits(scale)? | half_bits(bias)? << 16;
            }
        }
    } else {
        for (words, &(scale, _)) in tile.as_chunks_mut::<2>().0.iter_mut().zip(groups) {
            if let Some(word) = words.get_mut(row / 2) {
                *word |= half_bits(scale)? << (row % 2 * 16);
            }
        }
    }
    Ok(())
}

/// The bits of `value` as f16. A value that is already infinite or NaN in the file stays so.
fn half_bits(value: f32) -> Result<u32> {
    let half = f16::from_f32(value);
    if half.is_infinite() && value.is_finite() {
        return Err(Error::unsupported(format!("expected weight scales within f16 (at most 65504), found {value}")));
    }
    Ok(u32::from(half.to_bits()))
}

/// Reads all packed rows back as floats, row-major: `out.len() == rows * columns`. Slow and plain by design.
pub fn unpack_rows(packed: &PackedRows, out: &mut [f32]) -> Result<()> {
    if packed.rows.checked_mul(packed.columns) != Some(out.len()) {
        return Err(Error::internal(format!(
            "expected room for {} x {} elements, found {}",
            packed.rows,
            packed.columns,
            out.len()
        )));
    }
    for (row, out) in out.chunks_exact_mut(packed.columns.max(1)).enumerate() {
        unpack_row(packed, row, out)?;
    }
    Ok(())
}

/// Reads one packed row back as floats: `out.len() == columns`.
pub fn unpack_row(packed: &PackedRows, row: usize, out: &mut [f32]) -> Result<()> {
    if row >= packed.rows || out.len() != packed.columns {
        return Err(Error::internal(format!(
            "expected a row below {} and room for {} elements, found row {row} and {}",
            packed.rows,
            packed.columns,
            out.len()
        )));
    }
    for (column, out) in out.iter_mut().enumerate() {
        *out = packed
            .element(row, column)
            .ok_or_else(|| Error::internal("packed planes are shorter than their layout"))?;
    }
    Ok(())
}

impl PackedRows {
    /// One element, exactly as the layout's description reads; `None` outside the planes.
    fn element(&self, row: usize, column: usize) -> Option<f32> {
        let padded = self.layout.padded_columns(self.columns);
        match self.layout {
            PackedLayout::F32 => Some(f32::from_bits(*self.low.get(row * padded + column)?)),
            PackedLayout::F16 => {
                let element = row * padded + column;
                Some(half_of(*self.low.get(element / 2)?, element % 2))
            }
            PackedLayout::Coded { codes, group, affine } => {
                let (low_bits, high_bits) = codes.planes();
                let mut code = plane_code(&self.low, low_bits, padded, row, column)?;
                if high_bits > 0 {
                    code |= plane_code(&self.high, high_bits, padded, row, column)? << low_bits;
                }
                let code = if codes.zero() == 0 { i32::from(code as u8 as i8) } else { code as i32 };
                let at = row / TILE * (padded / group) + column / group;
                if affine {
                    let word = *self.scales.get(at * 4 + row % TILE)?;
                    return Some(half_of(word, 0) * code as f32 + half_of(word, 1));
                }
                let word = *self.scales.get(at * 2 + row % TILE / 2)?;
                Some(half_of(word, row % 2) * (code - codes.zero()) as f32)
            }
        }
    }
}

/// The code at (`row`, `column`) of a plane of `bits` a code.
fn plane_code(plane: &[u32], bits: usize, padded: usize, row: usize, column: usize) -> Option<u32> {
    let span = 32 / bits;
    let word = *plane.get((row / TILE * (padded / span) + column / span) * TILE + row % TILE)?;
    let (byte, above) = (column % 4, column % span / 4);
    Some(word >> (8 * byte + bits * above) & ((1 << bits) - 1))
}

/// The f16 in the low (0) or high (1) half of a word.
fn half_of(word: u32, half: usize) -> f32 {
    f16::from_bits((word >> (16 * half)) as u16).to_f32()
}
