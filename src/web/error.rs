//! Errors as JavaScript gets them.

use crate::error::{Error, ErrorKind};
use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

/// An error on its way to JS: `{ code, message, path }`.
pub struct JsError(Error);

/// A result whose error JS gets.
pub type JsResult<T> = Result<T, JsError>;

impl From<Error> for JsError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<JsError> for JsValue {
    fn from(JsError(error): JsError) -> Self {
        let object = Object::new();
        let set = |name: &str, value: &str| {
            // Setting a property of a fresh plain object cannot fail.
            Reflect::set(&object, &name.into(), &value.into()).ok();
        };
        set("code", error.code());
        // A wrong argument's place belongs to the message: that is all that some show.
        let message = match error.kind() {
            ErrorKind::InvalidArgument => error.to_string(),
            _ => error.message().to_owned(),
        };
        set("message", &message);
        if let Some(path) = error.path() {
            set("path", &path);
        }
        object.into()
    }
}
