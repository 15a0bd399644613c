//! The registry's default model, which the set-up downloads.

use std::path::PathBuf;

use hanzo_edge::registry::{cached, default_model};

/// Its file; a test that needs it fails without.
pub fn path() -> PathBuf {
    let entry = default_model().unwrap();
    let path = cached(entry).unwrap();
    path.unwrap_or_else(|| panic!("{} is not in the cache folder: run `npm run setup`", entry.name))
}
