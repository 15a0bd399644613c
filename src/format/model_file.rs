//! The container-neutral form of a model: what models, planner and loader see of a file. Knows no container.

use std::collections::BTreeMap;
use std::ops::Range;

use super::FileFormat;
use super::metadata::{Metadata, shown};
use crate::error::{Error, Result};
use crate::quant::BlockFormat;

/// A tensor of a file: what it is and where its bytes lie.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorInfo {
    /// Its name in the file.
    pub name: String,
    /// Sizes of the axes, outermost first; the last axis is contiguous.
    pub shape: Vec<usize>,
    /// How its elements are stored. Rows are whole blocks.
    pub format: &'static BlockFormat,
    /// Which of the model's files it is in.
    pub shard: usize,
    /// Its bytes, from the start of that file.
    pub range: Range<u64>,
}

impl TensorInfo {
    /// Length of the contiguous axis; 1 for a scalar.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// How many rows of [`TensorInfo::columns`] elements; a vector is one row.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.shape.split_last().map_or(1, |(_, outer)| outer.iter().product())
    }

    /// Bytes of a row.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.columns() / self.format.block_len * self.format.block_bytes
    }

    /// Fails when the tensor does not lie within a file of `file_len` bytes.
    pub(super) fn check_within(&self, file_len: u64) -> Result<()> {
        if self.range.end <= file_len {
            return Ok(());
        }
        let message = format!("expected its data up to byte {}, but the file ends at byte {file_len}", self.range.end);
        Err(Error::malformed(message).at(shown(self.name.as_bytes())))
    }

    /// Where whole rows lie in the file; fails when `rows` leaves the tensor.
    pub fn rows_range(&self, rows: Range<usize>) -> Result<Range<u64>> {
        let at = |row: usize| {
            let offset = u64::try_from(row).ok()?.checked_mul(u64::try_from(self.row_bytes()).ok()?)?;
            self.range.start.checked_add(offset).filter(|&end| end <= self.range.end)
        };
        match (at(rows.start), at(rows.end)) {
            (Some(start), Some(end)) if start <= end => Ok(start..end),
            _ => {
                Err(Error::internal(format!("expected rows within 0..{}, found {rows:?}", self.rows())).at(&self.name))
            }
        }
    }
}

/// What precedes the weights in one file.
pub struct FileHeader {
    /// The container.
    pub format: &'static FileFormat,
    /// The container's version.
    pub version: u32,
    /// What tensors are aligned to, in bytes.
    pub alignment: u64,
    /// The facts the file states.
    pub metadata: Metadata,
    /// The tensors, in the order of the file; `shard` is 0.
    pub tensors: Vec<TensorInfo>,
    /// Where the weights begin, in bytes from the start of the file.
    pub data_start: u64,
}

impl std::fmt::Debug for FileHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (keys, tensors) = (self.metadata.iter().len(), self.tensors.len());
        write!(f, "FileHeader({} v{}, {keys} keys, {tensors} tensors)", self.format.name, self.version)
    }
}

impl FileHeader {
    /// Fails when a tensor does not lie within a file of `file_len` bytes: for a length that was not known when the
    /// header was read.
    pub fn check_len(&self, file_len: u64) -> Result<()> {
        self.tensors.iter().try_for_each(|tensor| tensor.check_within(file_len))
    }

    /// Length that the file must have at least.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.range.end).fold(self.data_start, u64::max)
    }
}

/// A model: the facts and tensors of one or more files.
#[derive(Debug)]
pub struct ModelFile {
    /// The container's name.
    pub container: &'static str,
    /// The container's version.
    pub version: u32,
    /// The facts the model states.
    pub metadata: Metadata,
    /// How many files it came in.
    pub n_shards: usize,
    tensors: Vec<TensorInfo>,
    by_name: BTreeMap<String, usize>,
}

impl ModelFile {
    /// A model of these tensors; fails when a name occurs twice.
    pub fn new(header: FileHeader, tensors: Vec<TensorInfo>, n_shards: usize) -> Result<Self> {
        let mut by_name = BTreeMap::new();
        for (index, tensor) in tensors.iter().enumerate() {
            if by_name.insert(tensor.name.clone(), index).is_some() {
                let name = shown(tensor.name.as_bytes());
                return Err(Error::malformed("expected each tensor once, found it twice").at(name));
            }
        }
        let (container, version, metadata) = (header.format.name, header.version, header.metadata);
        Ok(Self { container, version, metadata, n_shards, tensors, by_name })
    }

    /// The tensors, in the order of the files.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name.get(name).and_then(|&index| self.tensors.get(index))
    }

    /// As [`ModelFile::tensor`], but a missing tensor is an error that names it.
    pub fn require_tensor(&self, name: &str) -> Result<&TensorInfo> {
        self.tensor(name)
            .ok_or_else(|| Error::malformed("expected this tensor in the file, found none of the name").at(name))
    }

    /// Bytes of all tensors as stored.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.range.end - tensor.range.start).sum()
    }
}
