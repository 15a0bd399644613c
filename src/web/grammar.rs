//! The border of the grammar engine's own module: a vocabulary goes in once, grammars become constraints, and masks cross
//! as bits. Errors are `{ code, message, path }`. Everything else of the crate is in the other modules.

mod error;
mod panic;

use crate::error::Error;
use crate::generate::{Grammar, GrammarCompiler, Permission, TokenConstraint, TokenVocabulary};
use error::JsResult;
pub use panic::{last_panic, start};
use wasm_bindgen::prelude::wasm_bindgen;

/// A vocabulary that grammars are compiled for. See `js/hanzo-edge-grammar.d.ts`.
#[wasm_bindgen]
pub struct Compiler(GrammarCompiler);

#[wasm_bindgen]
impl Compiler {
    /// For a vocabulary as the engine gives it.
    ///
    /// # Errors
    /// The block is none.
    #[wasm_bindgen(constructor)]
    pub fn new(vocabulary: &[u8]) -> JsResult<Self> {
        Ok(Self(GrammarCompiler::new(&TokenVocabulary::from_bytes(vocabulary)?)?))
    }

    /// The constraint of a grammar, as JSON, at its beginning.
    ///
    /// # Errors
    /// The grammar is wrong, unsupported or too large.
    pub fn compile(&self, grammar: &str) -> JsResult<Constraint> {
        let grammar: Grammar = serde_json::from_str(grammar)
            .map_err(|error| Error::internal(format!("expected a grammar as JSON: {error}")))?;
        Ok(Constraint(self.0.compile(&grammar)?))
    }
}

/// A grammar under way.
#[wasm_bindgen]
pub struct Constraint(Box<dyn TokenConstraint>);

#[wasm_bindgen]
impl Constraint {
    /// Takes the tokens that came and answers those that may come next: id `i` is bit `i % 32` of word `i / 32`.
    /// No words mean that the answer is complete.
    ///
    /// # Errors
    /// A token was not allowed, or the grammar became too complex to follow.
    pub fn mask(&mut self, accepted: &[u32]) -> JsResult<Vec<u32>> {
        for &token in accepted {
            self.0.accept(token)?;
        }
        Ok(match self.0.permission()? {
            Permission::Tokens(mask) => mask.into_bits(),
            _ => Vec::new(),
        })
    }
}
