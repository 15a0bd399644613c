//! Tools for models whose template does not know them: an instruction in the system message, and calls and results of
//! earlier turns as text. The notation is that of `hermes`, which many small models have seen.

use serde_json::{Map, Value, json};

use super::{Tool, ToolChoice, ToolFormat, Writing};

/// The row.
pub(super) static FORMAT: ToolFormat = ToolFormat {
    name: "generic",
    matches: |_| false,
    open: &["<tool_call>"],
    close: &["</tool_call>"],
    bare: false,
    heading: None,
    in_system: false,
    writing: Writing {
        begin: "<tool_call>\n",
        before_name: "{\"name\": \"",
        before_arguments: "\", \"arguments\": ",
        after_arguments: "}",
        // A model that was not trained for calls would repeat them.
        between: None,
        end: "\n</tool_call>",
    },
};

/// `messages` with the instruction, in the first one when that is the system's.
#[must_use]
pub fn instruct(messages: &[Value], tools: &[Tool], choice: &ToolChoice) -> Vec<Value> {
    let list: Vec<String> =
        tools.iter().map(|tool| tool.to_json().get("function").unwrap_or(&Value::Null).to_string()).collect();
    let when = match choice {
        ToolChoice::Required => "Call a function now.".to_owned(),
        ToolChoice::Named(name) => format!("Call the function {name} now."),
        _ => "When a function helps with the answer, call it. Otherwise answer in plain text.".to_owned(),
    };
    let text = format!(
        "You can call these functions:\n{}\n{when} A call is nothing but\n<tool_call>\n{{\"name\": \"the function's \
         name\", \"arguments\": {{the function's arguments}}}}\n</tool_call>",
        list.join("\n")
    );
    let mut messages = messages.to_vec();
    let first = messages.first_mut().filter(|message| message.get("role") == Some(&json!("system")));
    match first.and_then(|message| message.get_mut("content")) {
        Some(Value::String(content)) => {
            *content = format!("{content}\n\n{text}");
        }
        Some(Value::Array(parts)) => parts.push(json!({ "type": "text", "text": text })),
        _ => messages.insert(0, json!({ "role": "system", "content": text })),
    }
    messages
}

/// `messages` with calls and results as text, for a template that knows neither.
#[must_use]
pub fn rewrite_history(messages: &[Value]) -> Vec<Value> {
    messages.iter().map(rewritten).collect()
}

fn rewritten(message: &Value) -> Value {
    let Value::Object(entries) = message else { return message.clone() };
    if entries.get("role") == Some(&json!("tool")) {
        let content = format!("<tool_response>\n{}\n</tool_response>", text_of(entries));
        return json!({ "role": "user", "content": content });
    }
    let calls = entries.get("tool_calls").and_then(Value::as_array).filter(|calls| !calls.is_empty());
    let Some(calls) = calls else { return message.clone() };
    let mut parts: Vec<String> = Some(text_of(entries)).filter(|text| !text.is_empty()).into_iter().collect();
    parts.extend(calls.iter().map(call_text));
    json!({ "role": "assistant", "content": parts.join("\n") })
}

fn call_text(call: &Value) -> String {
    let function = call.get("function").unwrap_or(call);
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    let arguments = match function.get("arguments") {
        // What is no JSON is shown as it is.
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "{}".to_owned(),
    };
    format!("<tool_call>\n{{\"name\": {}, \"arguments\": {arguments}}}\n</tool_call>", json!(name))
}

fn text_of(entries: &Map<String, Value>) -> String {
    match entries.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text").unwrap_or(part).as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
