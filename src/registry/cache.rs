//! Where models are kept on the user's machine. The same rule as `scripts/lib/cache.mjs`; nothing is downloaded here.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use super::ModelEntry;
use crate::error::{Error, Result};

/// The cache folder: `$HANZO_EDGE_CACHE`, else `hanzo-edge` in the platform's cache folder.
///
/// # Errors
/// `not-found` when neither that variable nor the user's home folder is known.
pub fn cache_folder() -> Result<PathBuf> {
    folder_from(|name| env::var_os(name).filter(|value| !value.is_empty()))
}

/// Where a model is kept once it was downloaded.
///
/// # Errors
/// As [`cache_folder`].
pub fn model_path(entry: &ModelEntry) -> Result<PathBuf> {
    Ok(cache_folder()?.join("models").join(&entry.file))
}

/// The model's path when it is in the cache folder. A file gets its name only after it was verified, so its size is
/// enough here; [`super::pull`] reads it again.
///
/// # Errors
/// As [`cache_folder`].
pub fn cached(entry: &ModelEntry) -> Result<Option<PathBuf>> {
    let path = model_path(entry)?;
    let is_whole = path.metadata().is_ok_and(|metadata| metadata.len() == entry.bytes);
    Ok(is_whole.then_some(path))
}

/// The folder, given how to read an environment variable.
pub(super) fn folder_from(var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    if let Some(folder) = var("HANZO_EDGE_CACHE") {
        return Ok(folder.into());
    }
    let home = || var("HOME").or_else(|| var("USERPROFILE")).map(PathBuf::from);
    let base = if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library").join("Caches"))
    } else if cfg!(windows) {
        var("LOCALAPPDATA").map(PathBuf::from).or_else(|| home().map(|home| home.join("AppData").join("Local")))
    } else {
        var("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| home().map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("hanzo-edge"))
        .ok_or_else(|| Error::not_found("no cache folder: set HANZO_EDGE_CACHE, or HOME to your home folder"))
}
