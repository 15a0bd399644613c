//! Standard output: nothing here panics when the reader of a pipe went away.

use std::io::{self, Write};

use hanzo_edge::error::{Error, Result};
use serde_json::Value;

/// Writes text as it is and flushes it.
///
/// # Errors
/// `quota` when the disk or device behind standard output refuses. Ends the program when the reader went away: it has
/// what it wanted.
pub fn write(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Error::internal(format!("standard output cannot be written: {error}"))),
    }
}

/// Writes a line.
///
/// # Errors
/// As [`write`].
pub fn line(text: impl AsRef<str>) -> Result<()> {
    write(&format!("{}\n", text.as_ref()))
}

/// Writes one JSON object on a line.
///
/// # Errors
/// As [`write`].
pub fn json(value: &Value) -> Result<()> {
    line(value.to_string())
}

/// The message on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A table with left-aligned columns; the first row is its head.
///
/// # Errors
/// As [`write`].
pub fn table(rows: &[Vec<String>]) -> Result<()> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..n_columns).map(|column| width(column).unwrap_or(0)).collect();
    let padded = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    write(&rows.iter().map(padded).collect::<String>())
}

/// Bytes for people.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}
