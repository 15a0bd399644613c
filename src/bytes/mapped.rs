//! Files mapped into memory, so that weights are read without a copy. Native only.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use super::ByteSource;
use crate::error::{Error, Result};

/// Maps the file at `path`. `NotFound` when there is none, `InvalidArgument` when it cannot be read as a file.
pub fn open(path: &Path) -> Result<ByteSource> {
    let failed = |cause: std::io::Error| {
        let error = match cause.kind() {
            IoKind::NotFound => Error::not_found("no such file"),
            _ => Error::invalid_argument(format!("cannot read the file: {cause}")),
        };
        error.because(cause).at(path.display().to_string())
    };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::invalid_argument("expected a file, found a folder or device").at(path.display().to_string()));
    }
    if metadata.len() == 0 {
        // An empty mapping is refused on some systems.
        return Ok(ByteSource::memory(Vec::new()));
    }
    // SAFETY: the mapping is read-only and private to this process. Its bytes change only if somebody writes to the
    // file meanwhile; every reader takes them as untrusted input and keeps no assumption between two reads.
    // A file cut short while mapped ends the process, as for every program that maps files.
    let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
    Ok(ByteSource { bytes: Arc::new(map) })
}
