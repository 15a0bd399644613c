//! Tools, calls and choices as plain data, read from the forms that OpenAI's API gave them.

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The most tools of a request.
const MOST_TOOLS: usize = 128;

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name: letters, digits, `_`, `-`, `.`, at most 64.
    pub name: String,
    /// What it is good for.
    pub description: Option<String>,
    /// The JSON schema of its arguments, an object's.
    pub parameters: Value,
}

/// Whether the model calls a function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// It decides.
    #[default]
    Auto,
    /// It does not.
    None,
    /// It calls one or more.
    Required,
    /// It calls this one.
    Named(String),
}

/// A call in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall {
    /// Nine letters and digits, which every template accepts.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments as the model wrote them: JSON, unless the answer was cut.
    pub arguments: String,
}

impl Serialize for ToolCall {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let function = json!({ "name": self.name, "arguments": self.arguments });
        json!({ "id": self.id, "type": "function", "function": function }).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let call = Value::deserialize(deserializer)?;
        let text = |place: &str| call.pointer(place).and_then(Value::as_str).map(str::to_owned);
        let name = text("/function/name").ok_or_else(|| D::Error::custom("a call without a function's name"))?;
        // Some write the arguments as an object.
        let arguments =
            text("/function/arguments").or_else(|| call.pointer("/function/arguments").map(Value::to_string));
        Ok(Self { id: text("/id").unwrap_or_default(), name, arguments: arguments.unwrap_or_default() })
    }
}

/// What a piece of an answer adds to a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallDelta {
    /// The number of the call in the answer.
    pub index: usize,
    /// With the first delta of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// With the first delta of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// To be appended to the arguments.
    pub arguments_delta: String,
}

impl Tool {
    /// The tools of a list of `{ type: 'function', function: { name, description?, parameters? } }`.
    ///
    /// # Errors
    /// `invalid-argument` naming the place, what is expected there and what was found.
    pub fn list(tools: &Value) -> Result<Vec<Self>> {
        let Some(list) = tools.as_array() else { return Err(wrong("tools", "a list of tools", tools)) };
        if list.len() > MOST_TOOLS {
            let message = format!("expected at most {MOST_TOOLS}, found {}", list.len());
            return Err(Error::invalid_argument(message).at("tools"));
        }
        let tools =
            list.iter().enumerate().map(|(index, tool)| Self::read(tool, index)).collect::<Result<Vec<Self>>>()?;
        let is_twice = |index: usize, tool: &Self| tools.iter().take(index).any(|before| before.name == tool.name);
        match tools.iter().enumerate().find(|(index, tool)| is_twice(*index, tool)) {
            Some((index, tool)) => {
                let place = format!("tools[{index}].function.name");
                Err(wrong(&place, "a name that no tool before it has", &json!(tool.name)))
            }
            None => Ok(tools),
        }
    }

    fn read(tool: &Value, index: usize) -> Result<Self> {
        let place = format!("tools[{index}]");
        let function = tool.get("function").filter(|function| function.is_object());
        let is_function = tool.get("type").is_none_or(|kind| kind == "function");
        let Some(function) = function.filter(|_| is_function) else {
            return Err(wrong(&place, "{ type: 'function', function: { name, description?, parameters? } }", tool));
        };
        let name = function.get("name").and_then(Value::as_str).filter(|name| is_name(name));
        let Some(name) = name else {
            let found = function.get("name").unwrap_or(&Value::Null);
            return Err(wrong(&format!("{place}.function.name"), "1 to 64 letters, digits, _, - and .", found));
        };
        let parameters = match function.get("parameters") {
            None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
            Some(schema @ Value::Object(_)) => schema.clone(),
            Some(other) => return Err(wrong(&format!("{place}.function.parameters"), "a JSON schema", other)),
        };
        let description = function.get("description").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { name: name.to_owned(), description, parameters })
    }

    /// In the form that templates print.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut function = json!({ "name": self.name });
        if let Some(description) = &self.description {
            function["description"] = json!(description);
        }
        function["parameters"] = self.parameters.clone();
        json!({ "type": "function", "function": function })
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

impl ToolChoice {
    /// The choice in `'auto'`, `'none'`, `'required'` or `{ type: 'function', function: { name } }`.
    ///
    /// # Errors
    /// `invalid-argument` for another form, a name that no tool has, or a required call without tools.
    pub fn read(choice: &Value, tools: &[Tool]) -> Result<Self> {
        let choice = match (choice.as_str(), choice.pointer("/function/name").and_then(Value::as_str)) {
            (Some("auto"), _) => Self::Auto,
            (Some("none"), _) => Self::None,
            (Some("required"), _) if !tools.is_empty() => Self::Required,
            (_, Some(name)) if tools.iter().any(|tool| tool.name == name) => Self::Named(name.to_owned()),
            _ => {
                let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                let expected = format!(
                    "'auto', 'none', 'required' with tools, or {{ type: 'function', function: {{ name }} }} with one of [{}]",
                    names.join(", ")
                );
                return Err(wrong("toolChoice", &expected, choice));
            }
        };
        Ok(choice)
    }
}

fn wrong(place: &str, expected: &str, found: &Value) -> Error {
    let shown: String = found.to_string().chars().take(60).collect();
    Error::invalid_argument(format!("expected {expected}; found {shown}")).at(place)
}
