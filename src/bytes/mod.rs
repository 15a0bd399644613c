//! Where the bytes of a file come from: memory or, natively, a mapped file. Synchronous; knows nothing of what the
//! bytes mean. Whoever fetches over a network does it above and hands over memory.

#[cfg(not(target_arch = "wasm32"))]
mod mapped;

#[cfg(not(target_arch = "wasm32"))]
pub use mapped::open;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};

/// All bytes of one file, readable at any range; cheap to clone.
#[derive(Clone)]
pub struct ByteSource {
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

impl ByteSource {
    /// A source over bytes in memory.
    pub fn memory(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(bytes) }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.all().len() as u64
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// All bytes.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// The bytes of `range`, in bytes from the start; `MalformedFile` when it leaves the file.
    pub fn read(&self, range: Range<u64>) -> Result<&[u8]> {
        let bounds = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        bounds.and_then(|(start, end)| self.all().get(start..end)).ok_or_else(|| {
            let (start, end, len) = (range.start, range.end, self.len());
            Error::malformed(format!("expected bytes {start}..{end} in the file, found only {len} bytes"))
        })
    }

    /// The first `len` bytes, or all when there are fewer.
    #[must_use]
    pub fn prefix(&self, len: u64) -> &[u8] {
        let all = self.all();
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(all.len());
        all.get(..len).unwrap_or(all)
    }
}

impl fmt::Debug for ByteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteSource({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn ranges_are_checked_against_the_length() {
        let source = ByteSource::memory(vec![1, 2, 3, 4]);
        assert_eq!(source.read(1..3).unwrap(), [2, 3]);
        assert!(source.read(4..4).unwrap().is_empty());
        #[allow(clippy::reversed_empty_ranges)]
        for range in [0..5, 5..6, 3..2, 0..u64::MAX, u64::MAX..u64::MAX, 1 << 32..(1 << 32) + 1] {
            let error = source.read(range).unwrap_err();
            assert!(error.message().contains("found only 4 bytes"), "{error}");
        }
        assert_eq!(source.prefix(2), [1, 2]);
        assert_eq!(source.prefix(u64::MAX), [1, 2, 3, 4]);
    }

    #[test]
    #[cfg(not(target_arch = "wasm32"))]
    fn a_mapped_file_reads_as_its_bytes_and_a_missing_one_is_not_found() {
        let path = std::env::temp_dir().join(format!("hanzo-edge-bytes-{}", std::process::id()));
        std::fs::write(&path, b"GGUF").unwrap();
        assert_eq!(open(&path).unwrap().all(), b"GGUF");
        std::fs::write(&path, b"").unwrap();
        assert!(open(&path).unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::NotFound);
        assert!(error.to_string().contains("hanzo-edge-bytes"), "{error}");
        assert!(open(&std::env::temp_dir()).is_err());
    }
}
