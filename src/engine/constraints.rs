//! Constraints of answers, natively: the grammar engine is in this program.

use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::generate::{Grammar, GrammarCompiler, TokenConstraint, TokenVocabulary};

/// Makes constraints over one model's vocabulary.
#[derive(Default)]
pub struct Constraints {
    /// Made when it is first needed.
    compiler: Mutex<Option<GrammarCompiler>>,
}

impl Constraints {
    /// What makes an answer follow `grammar`.
    ///
    /// # Errors
    /// The grammar is wrong or too large.
    pub fn make(
        &self,
        grammar: &Grammar,
        vocabulary: impl FnOnce() -> Result<TokenVocabulary>,
    ) -> Result<Box<dyn TokenConstraint>> {
        // A compiler is whole or not there: a panic elsewhere cannot have left half a one.
        let mut compiler = self.compiler.lock().unwrap_or_else(PoisonError::into_inner);
        match &*compiler {
            Some(compiler) => compiler.compile(grammar),
            None => compiler.insert(GrammarCompiler::new(&vocabulary()?)?).compile(grammar),
        }
    }
}
