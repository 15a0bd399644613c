//! Models split over several GGUF files. The order comes from each file's own number, never from names or from the
//! order in which the files arrived.

use crate::error::{Error, Result};
use crate::format::{FileHeader, ModelFile};

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// Facts that files of one model agree on wherever they state them.
const SHARED: &[&str] = &[COUNT, TENSORS, "general.architecture", "general.name"];

/// Makes one model of its files, in any order; fails naming the file that is missing, doubled or foreign.
pub(super) fn join(mut headers: Vec<FileHeader>) -> Result<ModelFile> {
    let order = order(&headers)?;
    check_shared(&headers)?;
    let mut tensors = Vec::new();
    for &index in &order {
        let Some(header) = headers.get_mut(index) else { continue };
        for mut tensor in std::mem::take(&mut header.tensors) {
            tensor.shard = index;
            tensors.push(tensor);
        }
    }
    let first = order.first().copied().unwrap_or(0);
    let expected = headers.get(first).map(|header| header.metadata.get::<usize>(TENSORS)).transpose()?.flatten();
    if let Some(expected) = expected.filter(|&expected| order.len() > 1 && expected != tensors.len()) {
        let found = tensors.len();
        let message =
            format!("expected {expected} tensors in all files together, found {found}: one is of another model");
        return Err(Error::invalid_argument(message));
    }
    let n_shards = headers.len();
    ModelFile::new(headers.swap_remove(first), tensors, n_shards)
}

/// The indices of the headers in the order of their split numbers.
fn order(headers: &[FileHeader]) -> Result<Vec<usize>> {
    let mut numbers = Vec::with_capacity(headers.len());
    for header in headers {
        let number = header.metadata.get::<usize>(NUMBER)?;
        let count = header.metadata.get::<usize>(COUNT)?;
        numbers.push(match (number, count) {
            (None, None) if headers.len() == 1 => return Ok(vec![0]),
            (Some(number), Some(count)) if number < count => (number, count),
            (Some(number), Some(count)) => {
                return Err(Error::malformed(format!("expected a number below {count}, found {number}")).at(NUMBER));
            }
            _ => {
                let files = headers.len();
                let message =
                    format!("expected {files} parts of one model, found a file that is not a part of a split model");
                return Err(Error::invalid_argument(message));
            }
        });
    }
    let count = numbers.first().map_or(0, |&(_, count)| count);
    if let Some(&(number, other)) = numbers.iter().find(|&&(_, other)| other != count) {
        let part = number.saturating_add(1);
        let message = format!("expected parts of a model in {count} parts, found part {part} of one in {other}");
        return Err(Error::invalid_argument(message));
    }
    let mut order: Vec<usize> = (0..headers.len()).collect();
    order.sort_by_key(|&index| numbers.get(index).map(|&(number, _)| number));
    let sorted: Vec<usize> = order.iter().filter_map(|&index| numbers.get(index).map(|&(number, _)| number)).collect();
    check_complete(&sorted, count)?;
    Ok(order)
}

fn check_complete(sorted: &[usize], count: usize) -> Result<()> {
    if let Some(doubled) = sorted.windows(2).find_map(|pair| pair.first().filter(|first| pair.last() == Some(first))) {
        let part = doubled.saturating_add(1);
        return Err(Error::invalid_argument(format!("expected each part once, found part {part} of {count} twice")));
    }
    if sorted.len() < count {
        // Counts are untrusted: list only a few.
        let missing = (0..count).filter(|number| sorted.binary_search(number).is_err()).take(5);
        let missing: Vec<String> = missing.map(|number| number.saturating_add(1).to_string()).collect();
        let (missing, found) = (missing.join(", "), sorted.len());
        return Err(Error::not_found(format!(
            "expected {count} parts, found {found}: missing part {missing} of {count}"
        )));
    }
    Ok(())
}

fn check_shared(headers: &[FileHeader]) -> Result<()> {
    for key in SHARED {
        let mut values = headers.iter().filter_map(|header| header.metadata.value(key));
        let Some(first) = values.next() else { continue };
        if let Some(other) = values.find(|value| *value != first) {
            return Err(Error::invalid_argument(format!(
                "expected parts of one model, found both {first} and {other}"
            ))
            .at(*key));
        }
    }
    Ok(())
}

/// The file names of all parts of a split model, from the name of any of them (`model-00002-of-00003.gguf`);
/// `None` when the name is not one of a part.
#[must_use]
pub fn shard_names(file_name: &str) -> Option<Vec<String>> {
    /// More parts than any model has; the number comes from an untrusted name.
    const MOST: u32 = 4096;
    let stem = file_name.strip_suffix(".gguf")?;
    let (stem, count) = stem.rsplit_once("-of-")?;
    let (stem, number) = stem.rsplit_once('-')?;
    let parsed = |digits: &str| -> Option<u32> {
        let is_number = digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    let (number, n) = (parsed(number)?, parsed(count)?);
    if number == 0 || number > n || n > MOST {
        return None;
    }
    Some((1..=n).map(|part| format!("{stem}-{part:05}-of-{count}.gguf")).collect())
}
