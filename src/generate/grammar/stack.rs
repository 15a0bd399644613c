//! Room for the recursion of the grammar engine's compiler, which goes as deep as rules refer to each other. Natively an
//! exhausted stack would end the program.

use crate::error::{Error, Result};

/// For the longest chain of rules that fits a grammar's largest size. It is reserved, not used, until it is needed.
const STACK_BYTES: usize = 512 << 20;

/// Does `work` on a stack of its own.
///
/// # Errors
/// What `work` says; `limits` when there is no thread to be had.
pub(super) fn with_room<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread =
            thread.map_err(|error| Error::limits("a grammar could not be compiled: no thread").because(error))?;
        thread.join().unwrap_or_else(|_| Err(Error::invalid_argument("this grammar stopped the grammar engine")))
    })
}
