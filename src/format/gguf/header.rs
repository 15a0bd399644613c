//! The header of a GGUF file: magic, counts, metadata, tensor table. Checks everything a later layer relies on.

use super::cursor::{Cursor, Stop, len64};
use crate::error::{Error, Result};
use crate::format::metadata::shown;
use crate::format::{Array, FileHeader, Metadata, Parsed, Strings, TensorInfo, Value};
use crate::quant::{BLOCK_FORMATS, BlockFormat, block_format_by_ggml_id};

/// The longest header that is read. Real ones, vocabulary included, stay below 32 MiB.
pub const MAX_HEADER_BYTES: u64 = 256 << 20;

/// The most metadata entries, tensors and nested arrays together. Real files have a few thousand.
const MAX_ITEMS: u64 = 1 << 18;

/// How deep arrays may nest; real files do not nest them at all.
const MAX_ARRAY_DEPTH: usize = 4;

/// ggml's tensors have up to four axes.
const MAX_AXES: u32 = 4;

/// What tensors are aligned to when the file does not say.
const DEFAULT_ALIGNMENT: u64 = 32;

/// The least bytes that a metadata entry and a tensor entry take: they bound the counts a file may claim.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;

/// Reads the header from a prefix of the file; see [`Parsed`].
pub(super) fn parse(prefix: &[u8], file_len: Option<u64>) -> Result<Parsed> {
    let mut cursor = Cursor::new(prefix, file_len, MAX_HEADER_BYTES, MAX_ITEMS);
    match header(&mut cursor, file_len) {
        Ok(header) => Ok(Parsed::Header(header)),
        Err(Stop::Bad(error)) => Err(error),
        Err(Stop::NeedBytes(least)) => {
            // Doubling keeps the total work linear however little each step would need.
            let wanted =
                least.max(len64(prefix.len()).saturating_mul(2)).max(64 << 10).min(least.max(MAX_HEADER_BYTES));
            Ok(Parsed::NeedBytes(file_len.map_or(wanted, |len| wanted.min(len))))
        }
    }
}

fn header(cursor: &mut Cursor<'_>, file_len: Option<u64>) -> Result<FileHeader, Stop> {
    let version = version(cursor)?;
    let (n_tensors, n_entries) = (cursor.u64()?, cursor.u64()?);
    cursor.expect_items(n_entries, MIN_ENTRY_BYTES).map_err(|stop| stop.at(|| "metadata".to_owned()))?;
    cursor.expect_items(n_tensors, MIN_TENSOR_BYTES).map_err(|stop| stop.at(|| "tensors".to_owned()))?;
    let mut metadata = Metadata::default();
    for _ in 0..n_entries {
        let key = name(cursor, "metadata key")?;
        let value = value(cursor).map_err(|stop| stop.at(|| shown(key.as_bytes())))?;
        metadata.insert(key, value)?;
    }
    let alignment = alignment(&metadata)?;
    let mut tensors = Vec::new();
    for _ in 0..n_tensors {
        let name = name(cursor, "tensor name")?;
        let tensor = tensor(cursor, name, alignment).map_err(|stop| stop.at(|| shown(name.as_bytes())))?;
        tensors.push(tensor);
    }
    let data_start = cursor.position().next_multiple_of(alignment);
    place(&mut tensors, data_start, file_len)?;
    Ok(FileHeader { format: &super::FORMAT, version, alignment, metadata, tensors, data_start })
}

fn version(cursor: &mut Cursor<'_>) -> Result<u32, Stop> {
    let magic = cursor.array::<4>()?;
    if &magic != b"GGUF" {
        return Err(
            Error::malformed(format!("expected a file that begins with \"GGUF\", found {:?}", shown(&magic))).into()
        );
    }
    match cursor.u32()? {
        version @ (2 | 3) => Ok(version),
        version if matches!(version.swap_bytes(), 1..=3) => {
            Err(Error::unsupported("expected a little-endian GGUF file, found a big-endian one").into())
        }
        version => Err(Error::unsupported(format!("expected GGUF version 2 or 3, found {version}")).into()),
    }
}

fn name<'a>(cursor: &mut Cursor<'a>, what: &str) -> Result<&'a str, Stop> {
    let bytes = cursor.string().map_err(|stop| stop.at(|| what.to_owned()))?;
    std::str::from_utf8(bytes)
        .map_err(|_| Error::malformed(format!("expected a {what} in UTF-8, found {:?}", shown(bytes))).into())
}

/// GGUF's type numbers are listed here and nowhere else.
fn value(cursor: &mut Cursor<'_>) -> Result<Value, Stop> {
    Ok(match cursor.u32()? {
        0 => Value::U8(u8::from_le_bytes(cursor.array()?)),
        1 => Value::I8(i8::from_le_bytes(cursor.array()?)),
        2 => Value::U16(u16::from_le_bytes(cursor.array()?)),
        3 => Value::I16(i16::from_le_bytes(cursor.array()?)),
        4 => Value::U32(cursor.u32()?),
        5 => Value::I32(i32::from_le_bytes(cursor.array()?)),
        6 => Value::F32(f32::from_le_bytes(cursor.array()?)),
        7 => Value::Bool(bool_of(cursor.array()?)?),
        8 => Value::String(cursor.string()?.to_vec()),
        9 => Value::Array(array(cursor, MAX_ARRAY_DEPTH)?),
        10 => Value::U64(cursor.u64()?),
        11 => Value::I64(i64::from_le_bytes(cursor.array()?)),
        12 => Value::F64(f64::from_le_bytes(cursor.array()?)),
        other => return Err(unknown_type(other)),
    })
}

fn array(cursor: &mut Cursor<'_>, depth: usize) -> Result<Array, Stop> {
    let (kind, count) = (cursor.u32()?, cursor.u64()?);
    Ok(match kind {
        0 => Array::U8(cursor.list(count, u8::from_le_bytes)?),
        1 => Array::I8(cursor.list(count, i8::from_le_bytes)?),
        2 => Array::U16(cursor.list(count, u16::from_le_bytes)?),
        3 => Array::I16(cursor.list(count, i16::from_le_bytes)?),
        4 => Array::U32(cursor.list(count, u32::from_le_bytes)?),
        5 => Array::I32(cursor.list(count, i32::from_le_bytes)?),
        6 => Array::F32(cursor.list(count, f32::from_le_bytes)?),
        7 => {
            let bytes = cursor.bytes(count)?;
            Array::Bool(bytes.iter().map(|&byte| bool_of([byte])).collect::<Result<_>>()?)
        }
        8 => Array::String(strings(cursor, count)?),
        9 => Array::Array(arrays(cursor, count, depth)?),
        10 => Array::U64(cursor.list(count, u64::from_le_bytes)?),
        11 => Array::I64(cursor.list(count, i64::from_le_bytes)?),
        12 => Array::F64(cursor.list(count, f64::from_le_bytes)?),
        other => return Err(unknown_type(other)),
    })
}

fn unknown_type(found: u32) -> Stop {
    Error::malformed(format!("expected a metadata type from 0 to 12, found {found}")).into()
}

fn bool_of([byte]: [u8; 1]) -> Result<bool> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::malformed(format!("expected a bool stored as 0 or 1, found {other}"))),
    }
}

fn strings(cursor: &mut Cursor<'_>, count: u64) -> Result<Strings, Stop> {
    let n = cursor.expect(count, 8)?;
    // Tokens average a few bytes; the buffer grows where they do not.
    let mut strings = Strings::with_capacity(n, n.saturating_mul(8));
    for _ in 0..n {
        strings.push(cursor.string()?);
    }
    Ok(strings)
}

fn arrays(cursor: &mut Cursor<'_>, count: u64, depth: usize) -> Result<Vec<Array>, Stop> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::malformed(format!(
            "expected arrays nested at most {MAX_ARRAY_DEPTH} deep, found deeper ones"
        ))
        .into());
    };
    cursor.expect_items(count, 12)?;
    (0..count).map(|_| array(cursor, depth)).collect()
}

fn alignment(metadata: &Metadata) -> Result<u64> {
    const KEY: &str = "general.alignment";
    let alignment = metadata.get::<u32>(KEY)?.map_or(DEFAULT_ALIGNMENT, u64::from);
    if !alignment.is_power_of_two() {
        return Err(Error::malformed(format!("expected a power of two, found {alignment}")).at(KEY));
    }
    Ok(alignment)
}

/// One row of the tensor table. `range` is still relative to the start of the data.
fn tensor(cursor: &mut Cursor<'_>, name: &str, alignment: u64) -> Result<TensorInfo, Stop> {
    if name.is_empty() {
        return Err(Error::malformed("expected a name for every tensor, found an empty one").into());
    }
    let n_axes = cursor.u32()?;
    if n_axes > MAX_AXES {
        return Err(Error::malformed(format!("expected at most {MAX_AXES} axes, found {n_axes}")).into());
    }
    let mut dims = cursor.list(n_axes.into(), u64::from_le_bytes)?;
    let (kind, offset) = (cursor.u32()?, cursor.u64()?);
    let format = block_format_by_ggml_id(kind).ok_or_else(|| unsupported_format(kind))?;
    if !offset.is_multiple_of(alignment) {
        return Err(Error::malformed(format!("expected an offset in multiples of {alignment}, found {offset}")).into());
    }
    let bytes = stored_bytes(&dims, format)?;
    let end = offset.checked_add(bytes).ok_or_else(|| past_64_bits(&dims))?;
    check_addressable(bytes, len64(usize::MAX / 2))?;
    // ggml writes the contiguous axis first.
    dims.reverse();
    let shape = dims.iter().map(|&dim| super::cursor::to_usize(dim)).collect::<Result<_, _>>()?;
    Ok(TensorInfo { name: name.to_owned(), shape, format, shard: 0, range: offset..end })
}

fn unsupported_format(kind: u32) -> Error {
    let known: Vec<&str> = BLOCK_FORMATS.iter().map(|format| format.name).collect();
    Error::unsupported(format!("expected weights in one of {}; found ggml type {kind}", known.join(", ")))
}

fn past_64_bits(dims: &[u64]) -> Error {
    Error::malformed(format!("expected a size that fits 64 bits, found {dims:?}"))
}

/// Bytes of a tensor with these axes, the contiguous one first.
fn stored_bytes(dims: &[u64], format: &BlockFormat) -> Result<u64> {
    if dims.contains(&0) {
        return Err(Error::malformed(format!("expected axes of at least 1, found {dims:?}")));
    }
    let columns = dims.first().copied().unwrap_or(1);
    if !columns.is_multiple_of(len64(format.block_len)) {
        let (name, len) = (format.name, format.block_len);
        return Err(Error::malformed(format!(
            "expected rows in multiples of {len} elements for {name}, found {columns}"
        )));
    }
    let elements = dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
    elements.and_then(|elements| format.bytes_of(elements)).ok_or_else(|| past_64_bits(dims))
}

/// Fails for a tensor that no slice on this platform could hold: `most` is half the address space.
fn check_addressable(bytes: u64, most: u64) -> Result<()> {
    if bytes > most {
        return Err(Error::out_of_memory(format!("the tensor takes {bytes} bytes; this platform can address {most}")));
    }
    Ok(())
}

/// Makes ranges absolute; fails when a tensor leaves the file or two overlap.
fn place(tensors: &mut [TensorInfo], data_start: u64, file_len: Option<u64>) -> Result<()> {
    for tensor in tensors.iter_mut() {
        let absolute = tensor.range.start.checked_add(data_start).zip(tensor.range.end.checked_add(data_start));
        let Some((start, end)) = absolute else {
            return Err(past_64_bits(&[tensor.range.end, data_start]).at(shown(tensor.name.as_bytes())));
        };
        tensor.range = start..end;
        if let Some(len) = file_len {
            tensor.check_within(len)?;
        }
    }
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_by_key(|tensor| tensor.range.start);
    for pair in order.windows(2) {
        if let [before, after] = pair
            && before.range.end > after.range.start
        {
            let other = shown(before.name.as_bytes());
            let error = Error::malformed(format!("expected data of its own, found it inside that of {other:?}"));
            return Err(error.at(shown(after.name.as_bytes())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::error::ErrorKind;
    use crate::quant::block_format_by_name;

    #[test]
    fn sizes_near_the_limits_of_32_bits_are_counted_in_64() {
        let most = u64::from(u32::MAX / 2);
        let bytes = |dims: &[u64], name| stored_bytes(dims, block_format_by_name(name).unwrap()).unwrap();
        // 785 MiB of floats, more than 2^32 bits: addressable in 32 bits.
        assert_eq!(bytes(&[4096, 50257], "f32"), 823_410_688);
        check_addressable(bytes(&[4096, 50257], "f32"), most).unwrap();
        check_addressable(bytes(&[4096, 262_144], "q8_0"), most).unwrap();
        // 2^31 floats are 8 GiB: not addressable there.
        let error = check_addressable(bytes(&[1 << 31], "f32"), most).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    }
}
