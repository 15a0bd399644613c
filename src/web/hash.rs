//! SHA-256 of what JS downloads, piece by piece; the browser's own digest wants all bytes at once.

use sha2::Digest;
use wasm_bindgen::prelude::wasm_bindgen;

/// A running SHA-256.
#[wasm_bindgen]
#[derive(Default)]
pub struct Sha256(sha2::Sha256);

#[wasm_bindgen]
impl Sha256 {
    /// A hash of nothing yet.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest in hexadecimal.
    #[must_use]
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
