//! Token sequences as vectors: runs each up to the states after the final norm, pools these and brings the result into the
//! form asked for. A machine of small steps, as a generation is; what it runs is not kept in the caches.
//!
//! Holds no backend and no cache: both come with each step.

use super::cache::TokenCache;
use super::run::CHUNK_TOKENS;
use crate::backend::Executable;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::str::FromStr;

/// How the states of a sequence become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// They do not: the vector is those of all tokens, one after the other.
    None,
    /// Their mean.
    Mean,
    /// Those of the first token.
    Cls,
    /// Those of the last token.
    Last,
}

impl FromStr for Pooling {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "mean" => Ok(Self::Mean),
            "cls" => Ok(Self::Cls),
            "last" => Ok(Self::Last),
            _ => Err(Error::invalid_argument(format!("pooling: expected none, mean, cls or last, found {name:?}"))),
        }
    }
}

/// The form of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorForm {
    /// How they are made.
    pub pooling: Pooling,
    /// Leading elements that are kept.
    pub dimensions: usize,
    /// Whether what is kept is scaled to length 1.
    pub normalize: bool,
}

/// Sequences on their way to vectors.
pub struct Embedding {
    /// The first is under way.
    inputs: VecDeque<Vec<u32>>,
    form: VectorForm,
    total: usize,
    /// Tokens of the sequences that are done.
    done: usize,
    /// Tokens of the first sequence that were run.
    position: usize,
    pool: Pool,
    /// What this holds of the cache.
    claim: Option<u64>,
}

impl Embedding {
    /// Nothing is run before the first [`Embedding::next`]. Sequences have at least one token, and fit the context.
    #[must_use]
    pub fn new(inputs: Vec<Vec<u32>>, form: VectorForm) -> Self {
        let total = inputs.iter().map(Vec::len).sum();
        let inputs = inputs.into();
        Self { inputs, form, total, done: 0, position: 0, pool: Pool::default(), claim: None }
    }

    /// Whether every vector was given out.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Tokens of all sequences.
    #[must_use]
    pub fn total_tokens(&self) -> usize {
        self.total
    }

    /// Tokens run so far.
    #[must_use]
    pub fn done_tokens(&self) -> usize {
        self.done + self.position
    }

    /// Runs the next part of a sequence; answers its vector with the last part, `[dimensions]` or, without pooling,
    /// `[tokens, dimensions]`. `cache` must be the history of `executable`'s key/value cache, and stays so, whatever
    /// happens here. After an error the machine is of no more use.
    ///
    /// # Errors
    /// What the backend reports, or states that are not finite.
    pub async fn next(&mut self, executable: &mut dyn Executable, cache: &mut TokenCache) -> Result<Option<Vec<f32>>> {
        let Some(input) = self.inputs.front() else { return Ok(None) };
        if !self.claim.is_some_and(|claim| cache.is_claimed_by(claim)) {
            // What others had there is copied away; what they overwrote of this sequence is run again.
            self.claim = Some(cache.claim(executable, &[]).await?.number);
            (self.position, self.pool) = (0, Pool::default());
        }
        let rest = input.get(self.position..).unwrap_or_default();
        let chunk = rest.get(..executable.max_tokens().clamp(1, CHUNK_TOKENS)).unwrap_or(rest);
        match executable.hidden(chunk, self.position).await {
            Ok(states) => self.pool.add(self.form.pooling, &states, chunk.len()),
            Err(error) => {
                cache.clear();
                return Err(error);
            }
        }
        self.position += chunk.len();
        if self.position < input.len() {
            return Ok(None);
        }
        let vector = std::mem::take(&mut self.pool).finish(&self.form)?;
        (self.done, self.position) = (self.done + input.len(), 0);
        self.inputs.pop_front();
        Ok(Some(vector))
    }
}

/// The states of a sequence as they come.
#[derive(Default)]
struct Pool {
    tokens: usize,
    /// Elements of a token's states.
    width: usize,
    states: Vec<f32>,
    sums: Vec<f64>,
}

impl Pool {
    /// Takes the states of the next `tokens` tokens.
    fn add(&mut self, pooling: Pooling, states: &[f32], tokens: usize) {
        self.width = states.len() / tokens.max(1);
        let mut rows = states.chunks_exact(self.width.max(1));
        match pooling {
            Pooling::None => self.states.extend_from_slice(states),
            Pooling::Mean => {
                self.sums.resize(self.width, 0.0);
                for row in rows {
                    self.sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
                }
            }
            Pooling::Cls if self.tokens > 0 => {}
            Pooling::Cls => self.states = rows.next().unwrap_or_default().to_vec(),
            Pooling::Last => self.states = rows.next_back().unwrap_or_default().to_vec(),
        }
        self.tokens += tokens;
    }

    fn finish(self, form: &VectorForm) -> Result<Vec<f32>> {
        let states = match form.pooling {
            Pooling::Mean => self.sums.iter().map(|sum| (sum / self.tokens.max(1) as f64) as f32).collect(),
            _ => self.states,
        };
        let mut vector = Vec::new();
        for row in states.chunks(self.width.max(1)) {
            let kept = row.get(..form.dimensions).unwrap_or(row);
            let length = kept.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            if !length.is_finite() {
                return Err(Error::internal("expected states that are finite numbers, found others"));
            }
            // Zeros have no direction and stay zeros.
            let scale = if form.normalize && length > 0.0 { 1.0 / length } else { 1.0 };
            vector.extend(kept.iter().map(|value| (f64::from(*value) * scale) as f32));
        }
        Ok(vector)
    }
}

#[cfg(test)]
#[path = "embedding_tests.rs"]
mod tests;
