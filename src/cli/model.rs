//! From what the user calls a model to a file, and to a loaded engine.

use std::path::{Path, PathBuf};

use hanzo_edge::engine::{Edge, EdgeConfig, Model};
use hanzo_edge::error::{Context, Error, Result};
use hanzo_edge::{models, registry};

use crate::progress::Bar;

/// The file of a registry name, a path or a URL; the registry's default for `None`. Downloads what is not there yet,
/// with a bar.
///
/// # Errors
/// `not-found` for what is neither a known name nor a file; what the download reports.
pub fn resolve(name: Option<&str>) -> Result<PathBuf> {
    let entry = match name {
        None => registry::default_model().ok_or_else(|| Error::internal("the registry is empty"))?,
        Some(name) if name.starts_with("http://") || name.starts_with("https://") => {
            let mut bar = Bar::new();
            return registry::fetch_url(name, &mut |progress| bar.show(progress));
        }
        Some(name) => match registry::find(name) {
            Ok(entry) => entry,
            Err(_) if Path::new(name).is_file() => return Ok(PathBuf::from(name)),
            Err(_) if looks_like_a_path(name) => return Err(Error::not_found(format!("no file is at {name:?}"))),
            Err(error) => return Err(error),
        },
    };
    // A file has its name only after it was verified.
    if let Some(path) = registry::cached(entry)? {
        return Ok(path);
    }
    let mut bar = Bar::new();
    registry::pull(&entry.name, &mut |progress| bar.show(progress))
}

fn looks_like_a_path(name: &str) -> bool {
    name.contains(['/', '\\']) || Path::new(name).extension().is_some_and(|extension| extension == "gguf")
}

/// Loads a model.
///
/// # Errors
/// As [`resolve`], and what the engine reports.
pub fn load(name: Option<&str>, config: EdgeConfig) -> Result<Edge> {
    if let Some(Ok(entry)) = name.map(registry::find) {
        // Before a download, since the file could not be run after it.
        models::find(&entry.architecture).at(|| entry.name.as_str())?;
    }
    open(resolve(name)?, config)
}

/// Loads a model file.
///
/// # Errors
/// What the engine reports.
pub fn open(path: PathBuf, config: EdgeConfig) -> Result<Edge> {
    Edge::new(EdgeConfig { model: Model::File(path), ..config })
}
