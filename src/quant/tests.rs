//! Tests of the block formats against candle's decoder and encoder, and of the packed planes against the layout's text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};

use super::{BLOCK_FORMATS, BlockFormat, PackedLayout, block_format_by_ggml_id, block_format_by_name};
use super::{Codes, PackedRows, pack_rows, pack_rows_as, unpack_rows};
use crate::error::ErrorKind;

/// Bytes from a fixed seed.
fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Floats in -1..1 from a fixed seed.
fn random_floats(seed: u64, len: usize) -> Vec<f32> {
    let bytes = random_bytes(seed, len * 2);
    bytes.as_chunks::<2>().0.iter().map(|pair| f32::from(i16::from_le_bytes(*pair)) / 32768.0).collect()
}

/// Where a block of this format holds f16 scales.
fn scale_offsets(name: &str) -> &'static [usize] {
    match name {
        "q4_0" | "q5_0" | "q8_0" | "iq4_nl" => &[0],
        "q4_1" | "q5_1" | "q4_k" | "q5_k" => &[0, 2],
        "q2_k" => &[80, 82],
        "q3_k" => &[108],
        "q6_k" => &[208],
        _ => &[],
    }
}

/// Random blocks whose f16 scales are moderate, so that products with sub-scales stay in f16's normal range.
fn moderate_blocks(format: &BlockFormat, seed: u64, blocks: usize) -> Vec<u8> {
    let mut bytes = random_bytes(seed, blocks * format.block_bytes);
    for (index, block) in bytes.chunks_exact_mut(format.block_bytes).enumerate() {
        for &offset in scale_offsets(format.name) {
            let scale = half::f16::from_f32((index as f32 * 0.37 + offset as f32).sin() * 0.5);
            block[offset..offset + 2].copy_from_slice(&scale.to_le_bytes());
        }
        match format.name {
            "mxfp4" => block[0] = 120 + block[0] % 16,
            "f32" => block.copy_from_slice(&(index as f32).cos().to_le_bytes()),
            "f16" => block.copy_from_slice(&half::f16::from_f32((index as f32).cos()).to_le_bytes()),
            "bf16" => block.copy_from_slice(&half::bf16::from_f32((index as f32).cos()).to_le_bytes()),
            _ => {}
        }
    }
    bytes
}

fn candle_type(name: &str) -> Option<GgmlDType> {
    Some(match name {
        "f32" => GgmlDType::F32,
        "f16" => GgmlDType::F16,
        "bf16" => GgmlDType::BF16,
        "q4_0" => GgmlDType::Q4_0,
        "q4_1" => GgmlDType::Q4_1,
        "q5_0" => GgmlDType::Q5_0,
        "q5_1" => GgmlDType::Q5_1,
        "q8_0" => GgmlDType::Q8_0,
        "q2_k" => GgmlDType::Q2K,
        "q3_k" => GgmlDType::Q3K,
        "q4_k" => GgmlDType::Q4K,
        "q5_k" => GgmlDType::Q5K,
        "q6_k" => GgmlDType::Q6K,
        _ => return None,
    })
}

fn candle_dequantize(dtype: GgmlDType, bytes: &[u8], elements: usize) -> Vec<f32> {
    let storage = QStorage::from_data(bytes.to_vec().into(), &Device::Cpu, dtype).unwrap();
    let tensor = QTensor::new(storage, elements).unwrap();
    tensor.dequantize(&Device::Cpu).unwrap().to_vec1::<f32>().unwrap()
}

fn decode(format: &BlockFormat, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![0.0; bytes.len() / format.block_bytes * format.block_len];
    format.decode(bytes, &mut out).unwrap();
    out
}

fn assert_same_bits(format: &BlockFormat, ours: &[f32], theirs: &[f32]) {
    assert_eq!(ours.len(), theirs.len());
    for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
        assert!(same, "{}: element {index} is {ours}, candle says {theirs}", format.name);
    }
}

/// Two parts of a matrix as one, plane by plane.
fn joined(mut first: PackedRows, second: PackedRows) -> PackedRows {
    first.low.extend(second.low);
    first.high.extend(second.high);
    first.scales.extend(second.scales);
    first.rows += second.rows;
    first
}

#[test]
fn every_block_of_any_bytes_decodes_to_the_bits_of_candle() {
    let mut compared = 0;
    for format in BLOCK_FORMATS {
        let Some(dtype) = candle_type(format.name) else { continue };
        // Fully random bytes hold every kind of f16 scale: subnormal, infinite, NaN and negative.
        let blocks = 4096usize.div_ceil(format.block_len) * 16;
        for bytes in [random_bytes(7, blocks * format.block_bytes), moderate_blocks(format, 8, blocks)] {
            let ours = decode(format, &bytes);
            assert_same_bits(format, &ours, &candle_dequantize(dtype, &bytes, ours.len()));
        }
        compared += 1;
    }
    assert_eq!(compared, 13);
}

#[test]
fn codebook_formats_decode_to_the_bits_of_the_recorded_values() {
    for (name, fixture) in [
        ("iq4_nl", include_bytes!("../../tests/fixtures/quant/iq4_nl.bin").as_slice()),
        ("mxfp4", include_bytes!("../../tests/fixtures/quant/mxfp4.bin").as_slice()),
    ] {
        let format = block_format_by_name(name).unwrap();
        let (blocks, values) = fixture.split_at(256 * format.block_bytes);
        let values: Vec<f32> = values.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert_eq!(values.len(), 256 * 32);
        assert_same_bits(format, &decode(format, blocks), &values);
    }
}

#[test]
fn mxfp4_scales_that_f16_cannot_hold_are_refused_unless_the_block_is_zero() {
    let format = block_format_by_name("mxfp4").unwrap();
    let block = |exponent: u8, codes: u8| [[exponent].as_slice(), &[codes; 16]].concat();
    for exponent in 0..=255 {
        let packed = pack_rows(format, &block(exponent, 0x7f), 1, 32);
        if (104..=143).contains(&exponent) {
            let (mut expected, mut found) = ([0.0; 32], [0.0; 32]);
            format.decode(&block(exponent, 0x7f), &mut expected).unwrap();
            unpack_rows(&packed.unwrap(), &mut found).unwrap();
            assert_eq!(expected, found);
        } else {
            let error = packed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnsupportedModel);
            assert!(error.message().contains(&format!("2^{}", i32::from(exponent) - 127)), "{error}");
        }
        let zeros = pack_rows(format, &block(exponent, 0x80), 1, 32).unwrap();
        assert!(zeros.low.iter().chain(&zeros.scales).all(|&word| word == 0));
    }
}

#[test]
fn quantizing_gives_the_bytes_of_candle() {
    let mut compared = 0;
    for format in BLOCK_FORMATS.iter().filter(|format| format.quantize.is_some()) {
        let Some(dtype) = candle_type(format.name) else { continue };
        let mut values = random_floats(3, 32 * 256);
        values[64..96].fill(0.0);
        values[96..128].fill(0.25);
        values[128..160].fill(-0.75);
        let tensor = candle_core::Tensor::new(values.as_slice(), &Device::Cpu).unwrap();
        let theirs = QTensor::quantize(&tensor, dtype).unwrap();
        assert_eq!(format.encode(&values).unwrap(), theirs.data().unwrap().as_ref(), "{}", format.name);
        compared += 1;
    }
    assert!(compared == 8);
}

#[test]
fn packed_rows_read_back_as_the_decoded_values() {
    for format in BLOCK_FORMATS {
        let columns = format.block_len.max(32) * 3;
        for rows in [1, 3, 4, 5, 8] {
            let bytes = moderate_blocks(format, rows as u64, rows * columns / format.block_len);
            let expected = decode(format, &bytes);
            let packed = pack_rows(format, &bytes, rows, columns).unwrap();
            let mut found = vec![f32::NAN; rows * columns];
            unpack_rows(&packed, &mut found).unwrap();
            // Where scales are products of a block's and a group's, rounding them to f16 is the only difference.
            let rounded = rounded_values(format, &bytes).unwrap_or_else(|| expected.clone());
            for (index, (expected, (rounded, found))) in expected.iter().zip(rounded.iter().zip(&found)).enumerate() {
                assert_eq!(rounded, found, "{}: element {index}", format.name);
                let exact = !format.name.ends_with("_k");
                assert!(!exact || expected == found, "{}: element {index} is {found}, not {expected}", format.name);
            }
        }
    }
}

/// The values of a coded format with its scales and biases rounded to f16.
fn rounded_values(format: &BlockFormat, bytes: &[u8]) -> Option<Vec<f32>> {
    let PackedLayout::Coded { codes: width, group, affine } = format.layout else { return None };
    let elements = bytes.len() / format.block_bytes * format.block_len;
    let (mut codes, mut groups) = (vec![0; elements], vec![(0.0, 0.0); elements / group]);
    format.unpack.unwrap()(bytes, &mut codes, &mut groups).unwrap();
    let round = |value| half::f16::from_f32(value).to_f32();
    let value = |(index, &code): (usize, &i8)| {
        let (scale, bias) = groups[index / group];
        assert!(affine || bias == -(width.zero() as f32) * scale);
        let centered = if affine { f32::from(code) } else { f32::from(code) - width.zero() as f32 };
        round(scale) * centered + if affine { round(bias) } else { 0.0 }
    };
    Some(codes.iter().enumerate().map(value).collect())
}

#[test]
fn planes_have_the_sizes_of_their_layout() {
    for format in BLOCK_FORMATS {
        let (rows, columns) = (6, format.block_len.max(32));
        let bytes = moderate_blocks(format, 1, rows * columns / format.block_len);
        let packed = pack_rows(format, &bytes, rows, columns).unwrap();
        let sizes = [&packed.low, &packed.high, &packed.scales].map(|plane| plane.len() * 4);
        assert_eq!(sizes, format.layout.plane_bytes(rows, columns), "{}", format.name);
    }
}

#[test]
fn parts_of_four_rows_concatenate_plane_by_plane() {
    for format in BLOCK_FORMATS {
        let columns = format.block_len.max(32);
        let bytes = moderate_blocks(format, 2, 7 * columns / format.block_len);
        let cut = columns / format.block_len * format.block_bytes * 4;
        let whole = pack_rows(format, &bytes, 7, columns).unwrap();
        let first = pack_rows(format, &bytes[..cut], 4, columns).unwrap();
        let second = pack_rows(format, &bytes[cut..], 3, columns).unwrap();
        assert_eq!(joined(first, second), whole, "{}", format.name);
    }
}

#[test]
fn nibble_words_hold_columns_0_to_3_low_and_4_to_7_high() {
    let format = block_format_by_name("Q4_0").unwrap();
    // Code of column k is k mod 16; the file keeps columns 0..16 in low nibbles and 16..32 in high ones.
    let mut block = half::f16::from_f32(1.0).to_le_bytes().to_vec();
    block.extend((0..16u8).map(|k| k | (k << 4)));
    let packed = pack_rows(format, &block, 1, 32).unwrap();
    assert_eq!(packed.low[0], u32::from_le_bytes([0x40, 0x51, 0x62, 0x73]));
    assert_eq!(packed.low[4], u32::from_le_bytes([0xc8, 0xd9, 0xea, 0xfb]));
    assert_eq!(packed.low[1..4], [0, 0, 0]);
    assert_eq!(packed.scales, [0x3c00, 0]);
}

#[test]
fn odd_columns_of_f16_are_padded_by_a_zero() {
    let format = block_format_by_name("f16").unwrap();
    let bytes: Vec<u8> =
        [1.0f32, 2.0, 3.0].repeat(2).iter().flat_map(|v| half::f16::from_f32(*v).to_le_bytes()).collect();
    let packed = pack_rows(format, &bytes, 2, 3).unwrap();
    assert_eq!(packed.low, [0x4000_3c00, 0x4200, 0x4000_3c00, 0x4200]);
    let mut out = [0.0; 6];
    unpack_rows(&packed, &mut out).unwrap();
    assert_eq!(out, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
}

#[test]
fn wrong_sizes_are_errors() {
    let format = block_format_by_name("q4_0").unwrap();
    let bytes = moderate_blocks(format, 1, 4);
    for (rows, columns) in [(4, 31), (3, 32), (5, 32), (usize::MAX, 64), (usize::MAX / 2, 1 << 40)] {
        let error = pack_rows(format, &bytes, rows, columns).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MalformedFile, "{rows} x {columns}: {error}");
    }
    assert!(format.decode(&bytes, &mut [0.0; 127]).is_err());
    assert!(format.encode(&[0.0; 33]).is_err());
    assert!(pack_rows(format, &[], 0, 32).unwrap().low.is_empty());
    let dense = block_format_by_name("f32").unwrap();
    assert!(pack_rows(dense, &[], usize::MAX, 0).is_err());
}

#[test]
fn scales_beyond_f16_are_refused_and_hostile_ones_do_not_panic() {
    for format in BLOCK_FORMATS {
        let columns = format.block_len.max(32);
        for seed in 0..64 {
            let bytes = random_bytes(seed, columns / format.block_len * format.block_bytes * 4);
            if let Err(error) = pack_rows(format, &bytes, 4, columns) {
                assert_eq!(error.kind(), ErrorKind::UnsupportedModel, "{}: {error}", format.name);
            }
        }
    }
    let format = block_format_by_name("q6_k").unwrap();
    let mut block = vec![1; 210];
    block[192..208].fill(127);
    block[208..].copy_from_slice(&half::f16::MAX.to_le_bytes());
    assert!(pack_rows(format, &block, 1, 256).unwrap_err().message().contains("65504"));
}

#[test]
fn formats_are_found_by_id_and_name_and_none_is_doubled() {
    for format in BLOCK_FORMATS {
        assert!(std::ptr::eq(block_format_by_ggml_id(format.ggml_id).unwrap(), *format));
        assert!(std::ptr::eq(block_format_by_name(&format.name.to_uppercase()).unwrap(), *format));
        assert_eq!(format.unpack.is_some(), matches!(format.layout, PackedLayout::Coded { .. }));
    }
    assert!(block_format_by_ggml_id(9999).is_none());
}

/// Bell-shaped rows, as weights are, with a few outliers and a constant group.
fn weight_rows(rows: usize, columns: usize) -> Vec<f32> {
    let (a, b, c) =
        (random_floats(1, rows * columns), random_floats(2, rows * columns), random_floats(3, rows * columns));
    let mut values: Vec<f32> = a.iter().zip(&b).zip(&c).map(|((a, b), c)| 0.02 * (a + b + c) + 0.005).collect();
    values.iter_mut().step_by(97).for_each(|value| *value *= 4.0);
    values[..128].fill(-0.125);
    values
}

fn affine(codes: Codes, group: usize) -> PackedLayout {
    PackedLayout::Coded { codes, group, affine: true }
}

/// The values as f32 rows of a file, quantized and read back.
fn quantized(layout: PackedLayout, values: &[f32], columns: usize) -> Vec<f32> {
    let format = block_format_by_name("f32").unwrap();
    let bytes = format.encode(values).unwrap();
    let packed = pack_rows_as(layout, format, &bytes, values.len() / columns, columns).unwrap();
    let mut found = vec![f32::NAN; values.len()];
    unpack_rows(&packed, &mut found).unwrap();
    found
}

fn squared_error(expected: &[f32], found: &[f32]) -> f64 {
    expected.iter().zip(found).map(|(e, f)| f64::from(e - f).powi(2)).sum()
}

/// What rounding between the least and the largest value of each group gives, in exact scales.
fn min_max_error(values: &[f32], group: usize, bits: usize) -> f64 {
    let top = ((1 << bits) - 1) as f32;
    let error = |values: &[f32]| {
        let (low, high) = values.iter().fold((f32::MAX, f32::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
        let scale = (high - low) / top;
        let near: Vec<f32> =
            values.iter().map(|v| if scale > 0.0 { ((v - low) / scale).round() * scale + low } else { low }).collect();
        squared_error(values, &near)
    };
    values.chunks(group).map(error).sum()
}

#[test]
fn searched_groups_err_less_than_those_between_least_and_largest() {
    let (rows, columns) = (9, 384);
    let values = weight_rows(rows, columns);
    let all = [Codes::B2, Codes::B3, Codes::B4, Codes::B5, Codes::B6, Codes::B8];
    for codes in all {
        for group in [32, 64, 128] {
            let found = quantized(affine(codes, group), &values, columns);
            assert!(found[..128].iter().all(|value| *value == -0.125), "a constant group is exact");
            let (error, plain) = (squared_error(&values, &found), min_max_error(&values, group, codes.bits()));
            // With few codes much is gained, with many there is little to gain, and f16 scales cost a little.
            let share = [0.62, 0.85, 0.93, 1.0, 1.03, 1.12][all.iter().position(|other| *other == codes).unwrap()];
            println!("{codes:?} {group}: {:.3}", error / plain);
            assert!(error <= share * plain, "{codes:?} {group}: {error:e} of {plain:e}");
        }
    }
}

#[test]
fn rows_of_bytes_err_by_half_a_step() {
    let (rows, columns) = (5, 96);
    let values = weight_rows(rows, columns);
    let found = quantized(PackedLayout::Coded { codes: Codes::B8, group: columns, affine: false }, &values, columns);
    for (row, found) in values.chunks(columns).zip(found.chunks(columns)) {
        let step = row.iter().fold(0f32, |largest, value| largest.max(value.abs())) / 127.0;
        assert!(row.iter().zip(found).all(|(value, found)| (value - found).abs() <= 0.54 * step));
    }
}

#[test]
fn every_format_can_be_quantized_anew_and_parts_join() {
    for format in BLOCK_FORMATS {
        let columns = format.block_len.max(64) * 2;
        let bytes = moderate_blocks(format, 5, 7 * columns / format.block_len);
        let values = decode(format, &bytes);
        let energy: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
        for (codes, share) in [(Codes::B2, 0.2), (Codes::B4, 0.02), (Codes::B6, 1e-3), (Codes::B8, 1e-4)] {
            let layout = affine(codes, 64);
            let whole = pack_rows_as(layout, format, &bytes, 7, columns).unwrap();
            let mut found = vec![f32::NAN; values.len()];
            unpack_rows(&whole, &mut found).unwrap();
            let error = squared_error(&values, &found);
            assert!(error <= share * energy, "{} as {codes:?}: {:e}", format.name, error / energy);
            let cut = columns / format.block_len * format.block_bytes * 4;
            let first = pack_rows_as(layout, format, &bytes[..cut], 4, columns).unwrap();
            let second = pack_rows_as(layout, format, &bytes[cut..], 3, columns).unwrap();
            assert_eq!(joined(first, second), whole, "{}", format.name);
        }
    }
}

#[test]
fn what_cannot_be_quantized_is_refused() {
    let format = block_format_by_name("f32").unwrap();
    let layouts = [affine(Codes::B4, 64), PackedLayout::Coded { codes: Codes::B8, group: 64, affine: false }];
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e30] {
        for place in [0, 63] {
            for layout in layouts {
                let mut values = [0.5; 64];
                values[place] = bad;
                let bytes = format.encode(&values).unwrap();
                let error = pack_rows_as(layout, format, &bytes, 1, 64).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::UnsupportedModel, "{bad}: {error}");
            }
        }
    }
    // Numbers too small for f16 scales are zero; all zeros are exact.
    for tiny in [0.0, 1e-30, f32::MIN_POSITIVE / 4.0] {
        let found = quantized(layouts[0], &[[tiny, -tiny]; 32].concat(), 64);
        assert!(found.iter().all(|value| value.abs() < 1e-6));
    }
    let bytes = format.encode(&[0.0; 96]).unwrap();
    assert!(pack_rows_as(affine(Codes::B4, 64), format, &bytes, 1, 96).is_err(), "no whole groups");
    assert!(pack_rows_as(PackedLayout::F16, format, &bytes, 1, 96).is_err(), "nothing is packed as f16 anew");
    assert!(pack_rows_as(affine(Codes::B4, 32), format, &bytes, 2, 96).is_err(), "bytes of one row");
}
