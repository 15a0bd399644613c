//! The option `responseFormat` as a grammar: OpenAI's forms and short ones. Whether the grammar itself is right, its
//! compilation says.

use serde_json::{Map, Value, json};

use super::Grammar;
use crate::error::{Error, Result};

/// The forms, for messages.
const FORMS: &str = "{ type: 'text' }, { type: 'json_object' }, { type: 'json_schema', json_schema: { schema } }, \
                     { type: 'json_schema', schema }, { type: 'regex', regex } or { type: 'grammar', grammar }";

impl Grammar {
    /// The grammar of a `responseFormat`; `None` for text.
    ///
    /// # Errors
    /// `invalid-argument` for anything but the documented forms.
    pub fn from_response_format(value: &Value) -> Result<Option<Self>> {
        let Value::Object(format) = value else { return Err(wrong(value)) };
        match format.get("type").and_then(Value::as_str) {
            Some("text") => Ok(None),
            Some("json_object") => Ok(Some(Self::JsonSchema(json!({ "type": "object" })))),
            Some("json_schema") => json_schema(format).map(Some),
            Some("regex") => text(format, &["regex", "pattern"]).map(Self::Regex).map(Some),
            Some("grammar") => text(format, &["grammar", "lark"]).map(Self::Lark).map(Some),
            _ => Err(wrong(value)),
        }
    }
}

/// OpenAI puts the schema one level deeper, beside its name.
fn json_schema(format: &Map<String, Value>) -> Result<Grammar> {
    let inner = match format.get("json_schema") {
        Some(Value::Object(inner)) => inner,
        Some(other) => return Err(wrong(other)),
        None => format,
    };
    let schema = inner.get("schema").filter(|schema| schema.is_object() || schema.is_boolean());
    schema.cloned().map(Grammar::JsonSchema).ok_or_else(|| wrong(&Value::Object(format.clone())))
}

fn text(format: &Map<String, Value>, names: &[&str]) -> Result<String> {
    let text = names.iter().find_map(|name| format.get(*name)).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| wrong(&Value::Object(format.clone())))
}

fn wrong(found: &Value) -> Error {
    let shown: String = found.to_string().chars().take(60).collect();
    Error::invalid_argument(format!("expected {FORMS}; found {shown}")).at("responseFormat")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_documented_form_is_read() {
        let read = |value: Value| Grammar::from_response_format(&value).unwrap();
        assert_eq!(read(json!({"type": "text"})), None);
        assert_eq!(read(json!({"type": "json_object"})), Some(Grammar::JsonSchema(json!({"type": "object"}))));
        let schema = json!({"type": "integer"});
        let expected = Some(Grammar::JsonSchema(schema.clone()));
        let openai = json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}});
        assert_eq!(read(openai), expected);
        assert_eq!(read(json!({"type": "json_schema", "schema": schema})), expected);
        assert_eq!(read(json!({"type": "regex", "regex": "a+"})), Some(Grammar::Regex("a+".to_owned())));
        assert_eq!(
            read(json!({"type": "grammar", "grammar": "start: \"a\""})),
            Some(Grammar::Lark("start: \"a\"".to_owned()))
        );
    }

    #[test]
    fn other_forms_are_refused_with_what_was_found() {
        for value in [
            json!("json"),
            json!({"type": "xml"}),
            json!({"type": "json_schema"}),
            json!({"type": "json_schema", "json_schema": []}),
            json!({"type": "json_schema", "schema": "{}"}),
            json!({"type": "regex"}),
            json!({"type": "grammar", "grammar": 3}),
        ] {
            let error = Grammar::from_response_format(&value).unwrap_err();
            assert_eq!(
                (error.code(), error.path().as_deref()),
                ("invalid-argument", Some("responseFormat")),
                "{value}"
            );
        }
    }
}
