//! The one error type of the crate. Every layer reports through it; nothing above is known here.

use std::fmt;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure happened; stable, and the same in Rust, JS and HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or option is out of its range or of the wrong type.
    InvalidArgument,
    /// A file, tensor, model or device that was named does not exist.
    NotFound,
    /// A transfer failed.
    Network,
    /// Bytes differ from their recorded hash or size.
    Integrity,
    /// The platform's storage is full or denied.
    Quota,
    /// The file is sound, but what it holds is not something this engine runs.
    UnsupportedModel,
    /// The file contradicts its own format.
    MalformedFile,
    /// Memory for the model or its state could not be had.
    OutOfMemory,
    /// A device limit (binding size, workgroups, …) is too small for the request.
    Limits,
    /// The GPU device went away.
    DeviceLost,
    /// The prompt and the answer do not fit the context window.
    ContextOverflow,
    /// The chat template is missing, broken, or refused the conversation.
    Template,
    /// The engine was closed.
    Closed,
    /// A fault of this crate.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 14] = [
        Self::InvalidArgument,
        Self::NotFound,
        Self::Network,
        Self::Integrity,
        Self::Quota,
        Self::UnsupportedModel,
        Self::MalformedFile,
        Self::OutOfMemory,
        Self::Limits,
        Self::DeviceLost,
        Self::ContextOverflow,
        Self::Template,
        Self::Closed,
        Self::Internal,
    ];

    /// The stable code, equal to `EdgeErrorCode` of the JS package.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid-argument",
            Self::NotFound => "not-found",
            Self::Network => "network",
            Self::Integrity => "integrity",
            Self::Quota => "quota",
            Self::UnsupportedModel => "unsupported-model",
            Self::MalformedFile => "malformed-file",
            Self::OutOfMemory => "out-of-memory",
            Self::Limits => "limits",
            Self::DeviceLost => "device-lost",
            Self::ContextOverflow => "context-overflow",
            Self::Template => "template",
            Self::Closed => "closed",
            Self::Internal => "internal",
        }
    }
}

type Source = Box<dyn std::error::Error + Send + Sync>;

/// A failure: its kind, what was expected and found, and where.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    path: Vec<String>,
    source: Option<Source>,
}

impl Error {
    /// An error of `kind`; `message` says what was expected and what was found.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), path: Vec::new(), source: None }
    }

    /// Adds an outer breadcrumb: `error.at("blk.0.attn_q.weight")` then `.at("model.gguf")`.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.path.push(place.into());
        self
    }

    /// Attaches the error that caused this one.
    #[must_use]
    pub fn because(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The stable code of the kind.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// The message without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it happened, outermost first: `model.gguf → blk.0.attn_q.weight`; `None` when unknown.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        if self.path.is_empty() {
            return None;
        }
        Some(self.path.iter().rev().map(String::as_str).collect::<Vec<_>>().join(" → "))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            Some(path) => write!(f, "{path}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// What a JSON value is, for messages of what was found.
pub(crate) fn json_kind(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Adds places to the error of a result.
pub trait Context<T> {
    /// On an error, adds the outer breadcrumb that `place` makes.
    fn at<S: Into<String>>(self, place: impl FnOnce() -> S) -> Result<T>;
}

impl<T> Context<T> for Result<T> {
    fn at<S: Into<String>>(self, place: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| error.at(place()))
    }
}

macro_rules! constructors {
    ($($name:ident => $kind:ident),* $(,)?) => {
        impl Error {
            $(
                #[doc = concat!("An [`ErrorKind::", stringify!($kind), "`] with this message.")]
                pub fn $name(message: impl Into<String>) -> Self {
                    Self::new(ErrorKind::$kind, message)
                }
            )*
        }
    };
}

constructors! {
    invalid_argument => InvalidArgument,
    not_found => NotFound,
    network => Network,
    integrity => Integrity,
    unsupported => UnsupportedModel,
    malformed => MalformedFile,
    out_of_memory => OutOfMemory,
    limits => Limits,
    device_lost => DeviceLost,
    context_overflow => ContextOverflow,
    template => Template,
    closed => Closed,
    internal => Internal,
}
