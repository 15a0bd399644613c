//! Opens model files from memory as an engine does: growing prefixes, then all headers together.

use hanzo_edge::error::Result;
use hanzo_edge::format::{self, FileHeader, ModelFile, Parsed};

/// The header of a file, from prefixes as long as the parser asks for. With `streamed` the length is not known
/// until the end is met. Panics when the parser asks for nonsense.
pub fn header(file: &[u8], streamed: bool) -> Result<FileHeader> {
    let len = file.len() as u64;
    let (mut have, mut total_parsed) = (0, 0);
    let mut known = (!streamed).then_some(len);
    loop {
        total_parsed += have;
        match format::parse(&file[..have as usize], known)? {
            Parsed::Header(header) => {
                assert!(total_parsed <= 4 * len + 64, "parsing took {total_parsed} bytes of a file of {len}");
                header.check_len(len)?;
                return Ok(header);
            }
            Parsed::NeedBytes(wanted) => {
                assert!(wanted > have, "asked for {wanted} of {len} bytes with {have} at hand");
                assert!(known.is_none_or(|len| wanted <= len), "asked for {wanted} of {len} bytes");
                if wanted >= len {
                    known = Some(len);
                }
                have = wanted.min(len);
            }
        }
    }
}

/// The model in these files, in the order given.
pub fn model(files: &[Vec<u8>]) -> Result<ModelFile> {
    format::join(files.iter().map(|file| header(file, false)).collect::<Result<_>>()?)
}
