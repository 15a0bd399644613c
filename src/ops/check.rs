//! Checks that shape rules share.

use crate::error::{Error, Result};
use crate::graph::{Dim, Fact};

/// The facts as an array; fails unless there are exactly `N`.
pub fn arity<'a, const N: usize>(inputs: &[&'a Fact]) -> Result<[&'a Fact; N]> {
    inputs.try_into().map_err(|_| Error::internal(format!("expected {N} inputs, found {}", inputs.len())))
}

/// Fails unless both facts are equal.
pub fn same(lhs: &Fact, rhs: &Fact) -> Result<()> {
    if lhs == rhs {
        return Ok(());
    }
    Err(Error::internal(format!("expected equal shapes, found {:?} and {:?}", lhs.shape, rhs.shape)))
}

/// The fixed size of the last axis.
pub fn width(fact: &Fact) -> Result<usize> {
    fact.width().ok_or_else(|| Error::internal(format!("expected a fixed last axis, found {:?}", fact.shape)))
}

/// Fails unless a vector weight has `len` elements.
pub fn vector(fact: &Fact, len: usize) -> Result<()> {
    if fact.shape == [Dim::Fixed(len)] {
        return Ok(());
    }
    Err(Error::internal(format!("expected a vector of {len}, found {:?}", fact.shape)))
}

/// Rows and columns of a matrix weight.
pub fn matrix(fact: &Fact) -> Result<(usize, usize)> {
    match fact.shape.as_slice() {
        [Dim::Fixed(rows), Dim::Fixed(columns)] => Ok((*rows, *columns)),
        shape => Err(Error::internal(format!("expected a matrix, found {shape:?}"))),
    }
}
