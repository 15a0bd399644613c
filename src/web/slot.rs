//! A value shared by several JS objects that one call at a time may use. A call that waits takes the value out, so that
//! another call in the meantime gets an error instead of a second borrow, which would stop the module.

use crate::error::{Error, Result};
use std::cell::Cell;
use std::rc::Rc;

/// A shared value.
pub struct Slot<T>(Rc<Cell<Option<T>>>);

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Slot<T> {
    /// A slot that holds `value`.
    pub fn new(value: T) -> Self {
        Self(Rc::new(Cell::new(Some(value))))
    }

    /// Takes the value out; [`Slot::put`] it back.
    ///
    /// # Errors
    /// Another call has it.
    pub fn take(&self) -> Result<T> {
        self.0.take().ok_or_else(|| Error::internal("a call was made while another one was running"))
    }

    /// Puts the value back.
    pub fn put(&self, value: T) {
        self.0.set(Some(value));
    }

    /// Uses the value in a call that does not wait.
    ///
    /// # Errors
    /// Another call has it.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Result<R> {
        let mut value = self.take()?;
        let result = work(&mut value);
        self.put(value);
        Ok(result)
    }
}
