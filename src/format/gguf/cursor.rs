//! Reads little-endian values from a prefix of a file that may be too short. Knows nothing of GGUF's structure.

use crate::error::{Error, Result};

/// Why reading stopped.
pub(super) enum Stop {
    /// The prefix must be at least this long.
    NeedBytes(u64),
    /// The file is wrong.
    Bad(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Bad(error)
    }
}

impl Stop {
    /// Adds a place to the error.
    pub(super) fn at(self, place: impl FnOnce() -> String) -> Self {
        match self {
            Self::Bad(error) => Self::Bad(error.at(place())),
            stop => stop,
        }
    }
}

/// A position in the prefix.
pub(super) struct Cursor<'a> {
    prefix: &'a [u8],
    position: usize,
    /// Nothing may be read at or past this: the file's end, or the most a header may take.
    limit: u64,
    /// Whether the limit is the end of the file.
    limit_is_end: bool,
    /// How many more items may be read that take many times their stored bytes in memory.
    items_left: u64,
}

impl<'a> Cursor<'a> {
    /// At the start of a file of which `prefix` is known, and which has `file_len` bytes; headers longer than
    /// `max_len` or with more than `max_items` named or nested items are refused.
    pub(super) fn new(prefix: &'a [u8], file_len: Option<u64>, max_len: u64, max_items: u64) -> Self {
        let limit = file_len.unwrap_or(u64::MAX).min(max_len);
        Self { prefix, position: 0, limit, limit_is_end: file_len == Some(limit), items_left: max_items }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> u64 {
        len64(self.position)
    }

    /// Fails unless `count` items of at least `item_bytes` can lie ahead in the file; asks for more bytes unless they
    /// can lie in the prefix. What was promised to be backed by the prefix may be allocated.
    pub(super) fn expect(&self, count: u64, item_bytes: u64) -> Result<usize, Stop> {
        let end = count.checked_mul(item_bytes).and_then(|bytes| bytes.checked_add(self.position()));
        match end {
            Some(end) if end <= len64(self.prefix.len()) => to_usize(count),
            Some(end) if end <= self.limit => Err(Stop::NeedBytes(end)),
            _ => Err(self.past_limit(count, item_bytes)),
        }
    }

    /// As [`Cursor::expect`], for items that take many times their stored bytes in memory. More of them than the
    /// prefix holds are no reason to stop: each is read when its bytes are there.
    pub(super) fn expect_items(&mut self, count: u64, item_bytes: u64) -> Result<(), Stop> {
        if let Err(Stop::Bad(error)) = self.expect(count, item_bytes) {
            return Err(Stop::Bad(error));
        }
        match self.items_left.checked_sub(count) {
            Some(left) => self.items_left = left,
            None => {
                return Err(
                    Error::malformed(format!("expected at most {} items, found {count}", self.items_left)).into()
                );
            }
        }
        Ok(())
    }

    fn past_limit(&self, count: u64, item_bytes: u64) -> Stop {
        let (position, limit) = (self.position(), self.limit);
        let what = if item_bytes == 1 { format!("{count} bytes") } else { format!("{count} items") };
        Stop::Bad(Error::malformed(if self.limit_is_end {
            format!("expected {what} at byte {position}, but the file ends at byte {limit}")
        } else {
            format!("expected a header of at most {limit} bytes, found one with {what} at byte {position}")
        }))
    }

    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: u64) -> Result<&'a [u8], Stop> {
        let count = self.expect(count, 1)?;
        let end = self.position.saturating_add(count);
        let bytes = self.prefix.get(self.position..end).unwrap_or_default();
        self.position = end;
        Ok(bytes)
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let bytes = self.bytes(len64(N))?;
        Ok(bytes.first_chunk().copied().unwrap_or([0; N]))
    }

    /// The next `count` values of `N` bytes, each through `decode`.
    pub(super) fn list<T, const N: usize>(&mut self, count: u64, decode: fn([u8; N]) -> T) -> Result<Vec<T>, Stop> {
        self.expect(count, len64(N))?;
        let bytes = self.bytes(count.saturating_mul(len64(N)))?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| decode(*bytes)).collect())
    }

    pub(super) fn u32(&mut self) -> Result<u32, Stop> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Stop> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length and that many bytes.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Stop> {
        let len = self.u64()?;
        self.bytes(len)
    }
}

/// A length in 64 bits; exact on every platform there is.
pub(super) fn len64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// A count in this platform's width.
pub(super) fn to_usize(count: u64) -> Result<usize, Stop> {
    usize::try_from(count)
        .map_err(|_| Stop::Bad(Error::out_of_memory(format!("{count} is more than this platform can count"))))
}
