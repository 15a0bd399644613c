//! The shapes that messages may have, and which of them a template takes. A template is tried once with made-up
//! conversations; what it cannot take is reshaped before each rendering. Knows nothing of tokens.

use serde_json::{Map, Value, json};

use crate::error::{Error, Result, json_kind};
use crate::text::template::json::{Layout, to_json};

/// A word that no template prints by itself.
const PROBE: &str = "xqprobezv";

/// What a template takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shapes {
    /// Content as a list of typed parts.
    pub(crate) parts: bool,
    /// Content as a string.
    pub(crate) text: bool,
    /// No content beside tool calls.
    pub(crate) null: bool,
    /// The arguments of tool calls as an object; else as JSON text.
    pub(crate) argument_object: bool,
}

impl Shapes {
    /// Finds out by `render`, which gives `None` when the template fails.
    pub(crate) fn probe(render: impl Fn(&[Value]) -> Option<String>) -> Self {
        let shows = |content: Value| {
            let printed = render(&[json!({"role": "user", "content": content})])?;
            Some(printed.contains(PROBE) && !printed.contains("'type'") && !printed.contains("\"type\""))
        };
        let parts = shows(json!([{"type": "text", "text": PROBE}])) == Some(true);
        let text = shows(json!(PROBE)) == Some(true) || !parts;
        let call = |content: &Value, arguments: &Value| {
            let function = json!({"name": "f", "arguments": arguments});
            let calls = json!([{"id": "call00001", "type": "function", "function": function}]);
            let user = if text { json!("x") } else { json!([{"type": "text", "text": "x"}]) };
            render(&[
                json!({"role": "user", "content": user}),
                json!({"role": "assistant", "content": content, "tool_calls": calls}),
            ])
        };
        let object = json!({PROBE: PROBE});
        let argument_object = [Value::Null, json!("")].iter().any(|content| {
            // A dictionary printed as Python shows it, in single quotes, was meant to be text.
            call(content, &object).is_some_and(|printed| !printed.contains(&format!("'{PROBE}'")))
        });
        let arguments = if argument_object { object } else { json!("{}") };
        let null = call(&Value::Null, &arguments).is_some_and(|printed| !printed.contains("None"))
            || call(&json!(""), &arguments).is_none();
        Self { parts, text, null, argument_object }
    }

    /// `message` in the shape that the template takes.
    ///
    /// # Errors
    /// `InvalidArgument` naming the message and the part that is not text.
    pub(crate) fn adapt(&self, message: &Value, index: usize) -> Result<Value> {
        let Value::Object(entries) = message else {
            return Err(Error::invalid_argument(format!(
                "message {index} should be an object; found {}",
                json_kind(message)
            )));
        };
        if !entries.get("role").is_some_and(Value::is_string) {
            return Err(Error::invalid_argument(format!("message {index} should have a role, a string")));
        }
        let mut adapted = entries.clone();
        if let Some(content) = entries.get("content") {
            adapted.insert("content".to_string(), self.content(content, index)?);
        }
        if let Some(Value::Array(calls)) = entries.get("tool_calls") {
            if !self.null && entries.get("content").is_none_or(Value::is_null) {
                adapted.insert("content".to_string(), json!(""));
            }
            adapted.insert("tool_calls".to_string(), calls.iter().map(|call| self.tool_call(call)).collect());
        }
        Ok(Value::Object(adapted))
    }

    fn content(&self, content: &Value, index: usize) -> Result<Value> {
        match content {
            Value::String(text) if !self.text => Ok(json!([{"type": "text", "text": text}])),
            Value::Array(parts) => {
                let texts: Vec<&str> =
                    parts.iter().enumerate().map(|(at, part)| part_text(part, index, at)).collect::<Result<_>>()?;
                if self.parts {
                    return Ok(texts.into_iter().map(|text| json!({"type": "text", "text": text})).collect());
                }
                Ok(json!(texts.join("\n")))
            }
            Value::String(_) | Value::Null => Ok(content.clone()),
            other => Err(Error::invalid_argument(format!(
                "the content of message {index} should be a string, null or a list of parts; found {}",
                json_kind(other)
            ))),
        }
    }

    fn tool_call(&self, call: &Value) -> Value {
        let mut call = call.clone();
        if let Some(arguments) = arguments_of(&mut call) {
            match arguments {
                // What is no object is passed on as it is.
                Value::String(text) if self.argument_object => {
                    if let Ok(object) = serde_json::from_str::<Map<String, Value>>(text) {
                        *arguments = Value::Object(object);
                    }
                }
                Value::Object(_) if !self.argument_object => {
                    let value = minijinja::Value::from(minijinja::value::Serde(&*arguments));
                    if let Ok(text) = to_json(&value, &Layout::default()) {
                        *arguments = Value::String(text);
                    }
                }
                _ => {}
            }
        }
        call
    }
}

fn arguments_of(call: &mut Value) -> Option<&mut Value> {
    let entries = call.as_object_mut()?;
    if entries.contains_key("function") {
        entries.get_mut("function")?.get_mut("arguments")
    } else {
        entries.get_mut("arguments")
    }
}

fn part_text(part: &Value, index: usize, at: usize) -> Result<&str> {
    let part_kind = part.get("type").and_then(Value::as_str);
    match (part, part_kind) {
        (Value::String(text), _) => Ok(text),
        (_, Some("text" | "input_text" | "output_text")) => part.get("text").and_then(Value::as_str).ok_or_else(|| {
            Error::invalid_argument(format!("part {at} of message {index} should have a text, a string"))
        }),
        (_, found) => Err(Error::invalid_argument(format!(
            "part {at} of message {index} is of type {}; this model takes text only",
            found.unwrap_or("unknown")
        ))),
    }
}
