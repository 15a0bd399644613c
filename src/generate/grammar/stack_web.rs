//! The grammar engine's compiler on the web: its module stops when the stack is exhausted, and is started afresh.

use crate::error::Result;

/// Does `work`.
///
/// # Errors
/// What `work` says.
pub(super) fn with_room<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    work()
}
