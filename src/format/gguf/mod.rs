//! The GGUF container, versions 2 and 3, little endian, split or whole. Every count and length in such a file is
//! untrusted: nothing is allocated before the bytes that back it are there, and all arithmetic is checked.

mod cursor;
mod header;
mod shards;

pub use header::MAX_HEADER_BYTES;
pub use shards::shard_names;

use super::FileFormat;

/// The row of GGUF in the table of containers.
pub(super) static FORMAT: FileFormat =
    FileFormat { name: "gguf", is: |prefix| prefix.starts_with(b"GGUF"), parse: header::parse, join: shards::join };
