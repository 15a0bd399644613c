//! Constraints of answers, on the web: the grammar engine is another module, and whoever drives the answer asks it.

use crate::error::Result;
use crate::generate::{Grammar, RemoteConstraint, TokenConstraint, TokenVocabulary};

/// Makes constraints that are computed elsewhere.
#[derive(Default)]
pub struct Constraints;

impl Constraints {
    /// What asks for the tokens that `grammar` allows; the other module compiles it.
    ///
    /// # Errors
    /// None here.
    pub fn make(
        &self,
        _grammar: &Grammar,
        _vocabulary: impl FnOnce() -> Result<TokenVocabulary>,
    ) -> Result<Box<dyn TokenConstraint>> {
        Ok(Box::<RemoteConstraint>::default())
    }
}
