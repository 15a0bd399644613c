//! Model files in one neutral form: metadata, and tensors with the byte ranges they lie in. Parsers take bytes and may
//! ask for more; they do no input or output. Knows no architecture, tokenizer or device.
//!
//! A container is one row of [`FILE_FORMATS`].
#![deny(clippy::indexing_slicing, clippy::as_conversions)]

pub mod gguf;
mod metadata;
mod model_file;

pub use metadata::{Array, FromValue, Metadata, Strings, Value};
pub use model_file::{FileHeader, ModelFile, TensorInfo};

use crate::error::{Error, Result};

/// The answer of a parser to the first bytes of a file.
#[derive(Debug)]
pub enum Parsed {
    /// Everything before the weights.
    Header(FileHeader),
    /// The parser needs this many bytes from the start of the file: more than it was given, and never more than the
    /// file's length when that was given. Grows geometrically, so that asking again and again costs linear time.
    NeedBytes(u64),
}

/// A container that model files come in.
pub struct FileFormat {
    /// Its name, e.g. `gguf`.
    pub name: &'static str,
    /// Whether a file with these first bytes is one (at least [`SNIFF_BYTES`], or the whole file).
    pub is: fn(prefix: &[u8]) -> bool,
    /// Reads the header from a prefix of the file and, when known, the file's length.
    pub parse: fn(prefix: &[u8], file_len: Option<u64>) -> Result<Parsed>,
    /// Makes one model of the headers of its files. `TensorInfo::shard` is the index in this list.
    pub join: fn(headers: Vec<FileHeader>) -> Result<ModelFile>,
}

/// Every container.
pub static FILE_FORMATS: &[&FileFormat] = &[&gguf::FORMAT];

/// Bytes that [`sniff`] wants to see.
pub const SNIFF_BYTES: usize = 16;

/// The container of a file that begins with `prefix`; fails with what the file seems to be instead.
pub fn sniff(prefix: &[u8]) -> Result<&'static FileFormat> {
    if let Some(format) = FILE_FORMATS.iter().find(|format| (format.is)(prefix)) {
        return Ok(format);
    }
    let names: Vec<&str> = FILE_FORMATS.iter().map(|format| format.name).collect();
    let start = prefix.trim_ascii_start();
    let found = if prefix.is_empty() {
        "an empty file".to_owned()
    } else if start.starts_with(b"version https") {
        "a Git LFS pointer instead of the file it stands for".to_owned()
    } else if start.starts_with(b"<") {
        "a web page or XML".to_owned()
    } else {
        format!("a file that begins with {:?}", String::from_utf8_lossy(prefix.get(..4).unwrap_or(prefix)))
    };
    Err(Error::malformed(format!("expected a model file ({}), found {found}", names.join(", "))))
}

/// Reads the header of any known container from a prefix of the file; see [`Parsed`].
pub fn parse(prefix: &[u8], file_len: Option<u64>) -> Result<Parsed> {
    let whole = file_len.and_then(|len| usize::try_from(len).ok()).is_some_and(|len| prefix.len() >= len);
    if prefix.len() < SNIFF_BYTES && !whole {
        let wanted = u64::try_from(SNIFF_BYTES).unwrap_or(u64::MAX);
        return Ok(Parsed::NeedBytes(file_len.map_or(wanted, |len| wanted.min(len))));
    }
    (sniff(prefix)?.parse)(prefix, file_len)
}

/// Makes one model of the headers of its files, given in any order. `TensorInfo::shard` is the index in this list.
pub fn join(headers: Vec<FileHeader>) -> Result<ModelFile> {
    let Some(first) = headers.first() else {
        return Err(Error::invalid_argument("expected at least one model file, found none"));
    };
    let (name, join) = (first.format.name, first.format.join);
    if let Some(other) = headers.iter().find(|header| header.format.name != name) {
        return Err(Error::invalid_argument(format!(
            "expected files of one kind, found {name} and {}",
            other.format.name
        )));
    }
    join(headers)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn what_is_no_model_file_is_named_for_what_it_is() {
        for (bytes, found) in [
            (b"".as_slice(), "an empty file"),
            (b"<!DOCTYPE html><html>", "a web page"),
            (b"version https://git-lfs", "Git LFS pointer"),
            (b"GGML............", "\"GGML\""),
            (b"G", "\"G\""),
        ] {
            let error = parse(bytes, Some(u64::try_from(bytes.len()).unwrap())).unwrap_err();
            assert!(error.message().contains(found), "{error}");
        }
    }

    #[test]
    fn a_short_prefix_asks_for_more_but_never_past_the_file() {
        assert!(matches!(parse(b"GG", None).unwrap(), Parsed::NeedBytes(16)));
        assert!(matches!(parse(b"GG", Some(9)).unwrap(), Parsed::NeedBytes(9)));
        assert!(matches!(parse(b"GG", Some(u64::MAX)).unwrap(), Parsed::NeedBytes(16)));
        assert!(join(Vec::new()).is_err());
    }
}
