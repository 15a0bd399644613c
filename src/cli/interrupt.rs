//! Ctrl-C: ends the answer that is being made; where there is none, or at the second time, the program.

use std::process::exit;
use std::sync::{Mutex, PoisonError};

use hanzo_edge::error::{Error, Result};
use hanzo_edge::generate::AbortFlag;

/// What the shell expects of a program ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

static RUNNING: Mutex<Option<AbortFlag>> = Mutex::new(None);

fn running() -> std::sync::MutexGuard<'static, Option<AbortFlag>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on Ctrl-C ends an answer before it ends the program.
///
/// # Errors
/// `internal` when the system refuses.
pub fn install() -> Result<()> {
    let handler = || match running().take() {
        Some(flag) => flag.abort(),
        None => exit(INTERRUPTED),
    };
    ctrlc::set_handler(handler).map_err(|error| Error::internal("Ctrl-C cannot be watched").because(error))
}

/// Lets Ctrl-C end this answer.
pub fn watch(flag: AbortFlag) {
    *running() = Some(flag);
}

/// The answer is over.
pub fn unwatch() {
    *running() = None;
}
