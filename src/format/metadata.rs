//! The facts a model file states about itself: a typed map whose accessors name the key, the type expected and the
//! type found. Knows no container and gives no key a meaning.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};

/// One fact.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    /// A string as the file holds it; UTF-8 is checked when it is read.
    String(Vec<u8>),
    Array(Array),
}

/// A list of facts of one type.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    String(Strings),
    Array(Vec<Array>),
}

/// A list of strings in one allocation: vocabularies have hundreds of thousands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    /// An empty list with room.
    pub(crate) fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(count) }
    }

    /// Appends a string.
    pub(crate) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of string `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(index)?)
    }

    /// The bytes of each string, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

impl Array {
    /// How many elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kind_and_len().1
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kind_and_len(&self) -> (&'static str, usize) {
        match self {
            Self::U8(list) => ("u8", list.len()),
            Self::I8(list) => ("i8", list.len()),
            Self::U16(list) => ("u16", list.len()),
            Self::I16(list) => ("i16", list.len()),
            Self::U32(list) => ("u32", list.len()),
            Self::I32(list) => ("i32", list.len()),
            Self::U64(list) => ("u64", list.len()),
            Self::I64(list) => ("i64", list.len()),
            Self::F32(list) => ("f32", list.len()),
            Self::F64(list) => ("f64", list.len()),
            Self::Bool(list) => ("bool", list.len()),
            Self::String(list) => ("string", list.len()),
            Self::Array(list) => ("array", list.len()),
        }
    }
}

/// The value for people: strings in quotes and cut after 60 characters, arrays by type and length.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U8(value) => write!(f, "{value}"),
            Self::I8(value) => write!(f, "{value}"),
            Self::U16(value) => write!(f, "{value}"),
            Self::I16(value) => write!(f, "{value}"),
            Self::U32(value) => write!(f, "{value}"),
            Self::I32(value) => write!(f, "{value}"),
            Self::U64(value) => write!(f, "{value}"),
            Self::I64(value) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{value}"),
            Self::F64(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::String(bytes) => write!(f, "{:?}", shown(bytes)),
            Self::Array(array) => {
                let (kind, len) = array.kind_and_len();
                write!(f, "[{kind}; {len}]")
            }
        }
    }
}

/// A name or string of a file as a message may show it: cut, and with what is no UTF-8 replaced.
pub(super) fn shown(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    let text = String::from_utf8_lossy(bytes.get(..SHOWN * 4).unwrap_or(bytes));
    let mut cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < bytes.len() {
        cut.push('…');
    }
    cut
}

impl Value {
    /// Type and value, for messages.
    fn description(&self) -> String {
        let kind = match self {
            Self::U8(_) => "u8",
            Self::I8(_) => "i8",
            Self::U16(_) => "u16",
            Self::I16(_) => "i16",
            Self::U32(_) => "u32",
            Self::I32(_) => "i32",
            Self::U64(_) => "u64",
            Self::I64(_) => "i64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Bool(_) => "bool",
            Self::String(_) => "string",
            Self::Array(array) => {
                let (kind, len) = array.kind_and_len();
                return format!("an array of {len} {kind}");
            }
        };
        format!("{kind} {self}")
    }

    fn as_integer(&self) -> Option<i128> {
        match *self {
            Self::U8(value) => Some(value.into()),
            Self::I8(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::I16(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::I32(value) => Some(value.into()),
            Self::U64(value) => Some(value.into()),
            Self::I64(value) => Some(value.into()),
            _ => None,
        }
    }
}

/// A Rust type that facts can be read as. Integers may be stored in any width that holds them.
pub trait FromValue<'a>: Sized {
    /// The type's name in messages.
    const EXPECTED: &'static str;
    /// The value as this type, or `None` when it is of another.
    fn from_value(value: &'a Value) -> Option<Self>;
}

macro_rules! integers {
    ($($kind:ty),*) => { $(
        impl FromValue<'_> for $kind {
            const EXPECTED: &'static str = stringify!($kind);
            fn from_value(value: &Value) -> Option<Self> {
                value.as_integer()?.try_into().ok()
            }
        }
    )* };
}

integers!(u32, i32, u64, i64, usize);

macro_rules! borrowed {
    ($($kind:ty, $expected:literal, $pattern:pat => $value:expr;)*) => { $(
        impl<'a> FromValue<'a> for $kind {
            const EXPECTED: &'static str = $expected;
            fn from_value(value: &'a Value) -> Option<Self> {
                match value {
                    $pattern => $value,
                    _ => None,
                }
            }
        }
    )* };
}

borrowed! {
    f32, "f32", Value::F32(value) => Some(*value);
    bool, "bool", Value::Bool(value) => Some(*value);
    &'a str, "a UTF-8 string", Value::String(bytes) => std::str::from_utf8(bytes).ok();
    &'a [f32], "an array of f32", Value::Array(Array::F32(list)) => Some(list);
    &'a [i32], "an array of i32", Value::Array(Array::I32(list)) => Some(list);
    &'a [u32], "an array of u32", Value::Array(Array::U32(list)) => Some(list);
    &'a [bool], "an array of bool", Value::Array(Array::Bool(list)) => Some(list);
    &'a Strings, "an array of string", Value::Array(Array::String(list)) => Some(list);
    &'a Array, "an array", Value::Array(list) => Some(list);
}

/// A number per layer: an array of integers, or one integer for all layers (then one element).
impl FromValue<'_> for Vec<u32> {
    const EXPECTED: &'static str = "u32 or an array of u32";
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Array(Array::U32(list)) => Some(list.clone()),
            Value::Array(Array::I32(list)) => list.iter().map(|&value| value.try_into().ok()).collect(),
            Value::Array(_) => None,
            scalar => u32::from_value(scalar).map(|value| vec![value]),
        }
    }
}

/// The facts of a file, in its order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    by_key: BTreeMap<String, usize>,
}

impl Metadata {
    /// Adds a fact; fails when the key is taken or empty.
    pub fn insert(&mut self, key: &str, value: Value) -> Result<()> {
        if key.is_empty() {
            return Err(Error::malformed("expected a name for every metadata key, found an empty one"));
        }
        if self.by_key.insert(key.to_owned(), self.entries.len()).is_some() {
            return Err(Error::malformed("expected each metadata key once, found it twice").at(shown(key.as_bytes())));
        }
        self.entries.push((key.to_owned(), value));
        Ok(())
    }

    /// Keys and values, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of a key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.by_key.get(key).and_then(|&index| self.entries.get(index)).map(|(_, value)| value)
    }

    /// The value of a key as `T`, `None` when the file does not have it. Fails, naming key and types, on another type.
    pub fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match T::from_value(value) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::malformed(format!("expected {}, found {}", T::EXPECTED, value.description())).at(key)),
        }
    }

    /// As [`Metadata::get`], but fails when the file does not have the key.
    pub fn require<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T> {
        self.get(key)?.ok_or_else(|| Error::malformed(format!("expected {}, found no such key", T::EXPECTED)).at(key))
    }

    /// The strings of an array, each checked to be UTF-8; `None` when the file does not have the key.
    pub fn get_strings(&self, key: &str) -> Result<Option<Vec<String>>> {
        let Some(strings) = self.get::<&Strings>(key)? else { return Ok(None) };
        let checked = strings.iter().enumerate().map(|(index, bytes)| match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => {
                Err(Error::malformed(format!("expected UTF-8, found {:?} in entry {index}", shown(bytes))).at(key))
            }
        });
        checked.collect::<Result<_>>().map(Some)
    }

    /// Drops a fact that is no longer needed, such as a vocabulary already taken over.
    pub fn forget(&mut self, key: &str) {
        if self.by_key.remove(key).is_some() {
            self.entries.retain(|(held, _)| held != key);
            self.by_key = self.entries.iter().enumerate().map(|(index, (key, _))| (key.clone(), index)).collect();
        }
    }
}
