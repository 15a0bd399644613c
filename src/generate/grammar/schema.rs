//! JSON schemas before they are compiled: checked place by place, so that an error names the place, and closed, so that
//! an object holds the properties that are named and no others, on one line. Knows nothing of tokens.

use serde_json::{Map, Value, json};

use super::{MOST_REGEX_BYTES, MOST_SCHEMA_BYTES};
use crate::error::{Error, Result, json_kind};

/// How deep a schema may nest.
const MOST_DEPTH: usize = 64;
const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];
/// Numbers that count.
const COUNTS: [&str; 6] = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
const NUMBERS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
/// The largest count that is followed one by one.
const MOST_COUNT: u64 = 20_000;
/// Keywords that restrict values in a way that no grammar follows.
#[rustfmt::skip]
const UNSUPPORTED: [&str; 18] = [
    "not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "propertyNames", "dependencies",
    "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef",
    "$dynamicAnchor", "$recursiveAnchor",
];
/// Where the grammar engine reads how JSON is laid out.
const LAYOUT: &str = "x-guidance";
const SINGLE: [&str; 5] = ["additionalItems", "items", "additionalProperties", "unevaluatedItems", "not"];
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// The schema as it is compiled.
///
/// # Errors
/// `invalid-argument` with the place, what is expected there and what was found.
pub(crate) fn prepare(schema: &Value) -> Result<Value> {
    let n_bytes = schema.to_string().len();
    if n_bytes > MOST_SCHEMA_BYTES {
        return Err(Error::invalid_argument(format!(
            "expected a schema of at most {MOST_SCHEMA_BYTES} bytes, found {n_bytes}"
        )));
    }
    let mut check = Check { root: schema, path: Vec::new(), intersects: false };
    check.schema(schema)?;
    let mut schema = schema.clone();
    bound_times(&mut schema);
    if !check.intersects {
        close(&mut schema);
    }
    Ok(with_layout(schema))
}

/// One line, with a space after commas and colons: small models left free to indent may do so for ever.
fn with_layout(schema: Value) -> Value {
    let layout = json!({ "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": " });
    let mut entries = match schema {
        Value::Object(entries) => entries,
        // The only other schemas: everything, and nothing.
        Value::Bool(true) => Map::new(),
        _ => Map::from_iter([("enum".to_owned(), json!([]))]),
    };
    entries.insert(LAYOUT.to_owned(), layout);
    Value::Object(entries)
}

struct Check<'s> {
    root: &'s Value,
    path: Vec<String>,
    /// Whether one place has several lists of properties: then none can be closed by itself.
    intersects: bool,
}

impl<'s> Check<'s> {
    fn schema(&mut self, schema: &'s Value) -> Result<()> {
        if self.path.len() > 2 * MOST_DEPTH {
            return Err(self.wrong(&format!("a schema at most {MOST_DEPTH} deep"), "a deeper one"));
        }
        let entries = match schema {
            Value::Object(entries) => entries,
            Value::Bool(_) => return Ok(()),
            other => return Err(self.wrong("a schema: an object, true or false", json_kind(other))),
        };
        let combined =
            ["allOf", "anyOf", "oneOf", "$ref", "properties"].iter().filter(|key| entries.contains_key(**key)).count();
        self.intersects |= combined > 1 || entries.contains_key("allOf");
        for (key, value) in entries {
            self.path.push(key.clone());
            self.keyword(key, value)?;
            self.path.pop();
        }
        Ok(())
    }

    fn keyword(&mut self, key: &str, value: &'s Value) -> Result<()> {
        if UNSUPPORTED.contains(&key) || key == LAYOUT {
            let found = if key == "uniqueItems" && value == &Value::Bool(false) { return Ok(()) } else { key };
            return Err(self.wrong("a keyword that a grammar can follow", &format!("{found:?}")));
        }
        match key {
            "type" => self.types(value),
            "enum" => self.need(value.as_array().is_some_and(|list| !list.is_empty()), "a list of values", value),
            "required" => {
                let names = value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
                self.need(names, "a list of names", value)
            }
            "format" => self.need(value.is_string(), "a string", value),
            "pattern" => {
                let fits = value.as_str().is_some_and(|pattern| pattern.len() <= MOST_REGEX_BYTES);
                self.need(fits, &format!("a regular expression of at most {MOST_REGEX_BYTES} bytes"), value)
            }
            "$ref" => self.reference(value),
            "patternProperties" => {
                let names = value.as_object().into_iter().flat_map(|map| map.keys());
                let fits = names.map(String::len).all(|length| length <= MOST_REGEX_BYTES);
                self.need(fits, &format!("regular expressions of at most {MOST_REGEX_BYTES} bytes"), value)?;
                self.map(value)
            }
            _ if COUNTS.contains(&key) => {
                let fits = value.as_u64().is_some_and(|count| count <= MOST_COUNT);
                self.need(fits, &format!("a whole number from 0 to {MOST_COUNT}"), value)
            }
            _ if NUMBERS.contains(&key) => {
                let is_draft_4 = value.is_boolean() && key.starts_with("exclusive");
                self.need(value.is_number() || is_draft_4, "a number", value)
            }
            _ if LISTS.contains(&key) || (key == "items" && value.is_array()) => self.list(value),
            _ if MAPS.contains(&key) => self.map(value),
            _ if SINGLE.contains(&key) => self.schema(value),
            _ => Ok(()),
        }
    }

    fn types(&self, value: &Value) -> Result<()> {
        let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let fits = value.as_array().map_or_else(|| is_type(value), |list| !list.is_empty() && list.iter().all(is_type));
        self.need(fits, &format!("one of {} or a list of them", TYPES.join(", ")), value)
    }

    /// Only places of the same schema can be referred to, and these must be there.
    fn reference(&self, value: &Value) -> Result<()> {
        let pointer = value.as_str().and_then(|text| text.strip_prefix('#'));
        let found = pointer.filter(|pointer| {
            pointer.is_empty()
                || *pointer == "/"
                || (!pointer.contains(['~', '%']) && self.root.pointer(pointer).is_some())
        });
        self.need(found.is_some(), "\"#/…\" with the place of a part of this schema", value)
    }

    fn list(&mut self, value: &'s Value) -> Result<()> {
        let Value::Array(list) = value else { return Err(self.wrong("a list of schemas", json_kind(value))) };
        for (index, part) in list.iter().enumerate() {
            self.path.push(index.to_string());
            self.schema(part)?;
            self.path.pop();
        }
        Ok(())
    }

    fn map(&mut self, value: &'s Value) -> Result<()> {
        let Value::Object(map) = value else { return Err(self.wrong("an object of schemas", json_kind(value))) };
        for (name, part) in map {
            self.path.push(name.clone());
            self.schema(part)?;
            self.path.pop();
        }
        Ok(())
    }

    fn need(&self, fits: bool, expected: &str, found: &Value) -> Result<()> {
        if fits {
            return Ok(());
        }
        let shown: String = found.to_string().chars().take(40).collect();
        Err(self.wrong(expected, &shown))
    }

    fn wrong(&self, expected: &str, found: &str) -> Error {
        // Deep places are named by their beginning.
        let place: Vec<&str> = self.path.iter().take(12).map(String::as_str).collect();
        let place = if place.is_empty() { "the schema".to_owned() } else { place.join(".") };
        Error::invalid_argument(format!("{place}: expected {expected}, found {found}"))
    }
}

/// Times get nine digits of a second at most: their formats allow any number, and small models find no end to them.
fn bound_times(schema: &mut Value) {
    let Value::Object(entries) = schema else { return };
    let longest = match entries.get("format").and_then(Value::as_str) {
        Some("time") => Some("00:00:00.000000000+00:00".len()),
        Some("date-time") => Some("0000-00-00T00:00:00.000000000+00:00".len()),
        _ => None,
    };
    if let Some(longest) = longest.filter(|_| !entries.contains_key("maxLength")) {
        entries.insert("maxLength".to_owned(), json!(longest));
    }
    each_part(entries, bound_times);
}

/// Objects that name properties and do not say whether there may be others get none.
fn close(schema: &mut Value) {
    let Value::Object(entries) = schema else { return };
    if entries.contains_key("properties") && !has_any(entries, &["additionalProperties", "patternProperties"]) {
        entries.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    each_part(entries, close);
}

/// Does `work` on every schema right below a schema.
fn each_part(entries: &mut Map<String, Value>, work: fn(&mut Value)) {
    for (key, value) in entries.iter_mut() {
        match value {
            Value::Array(list) if LISTS.contains(&key.as_str()) || key == "items" => list.iter_mut().for_each(work),
            Value::Object(map) if MAPS.contains(&key.as_str()) => map.values_mut().for_each(work),
            Value::Object(_) if SINGLE.contains(&key.as_str()) => work(value),
            _ => {}
        }
    }
}

fn has_any(entries: &Map<String, Value>, keys: &[&str]) -> bool {
    keys.iter().any(|key| entries.contains_key(*key))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(schema: Value, place: &str, found: &str) {
        let error = prepare(&schema).unwrap_err();
        assert_eq!(error.code(), "invalid-argument");
        assert!(error.message().starts_with(&format!("{place}: expected ")), "{error}");
        assert!(error.message().contains(found), "{error}");
    }

    #[test]
    fn wrong_schemas_are_refused_with_their_place() {
        refused(json!("x"), "the schema", "a string");
        refused(json!({"properties": {"a": {"type": "strng"}}}), "properties.a.type", "strng");
        refused(json!({"properties": [1]}), "properties", "a list");
        refused(json!({"items": {"enum": []}}), "items.enum", "[]");
        refused(json!({"anyOf": [{"minimum": "ä".repeat(200)}]}), "anyOf.0.minimum", "ä");
        refused(json!({"maxItems": 1e9}), "maxItems", "1000000000");
        refused(json!({"minLength": -1}), "minLength", "-1");
        refused(json!({"properties": {"a": {"$ref": "#/$defs/b"}}}), "properties.a.$ref", "#/$defs/b");
        refused(json!({"$ref": "https://example.org/x"}), "$ref", "https://example.org/x");
        refused(json!({"not": {}}), "not", "not");
        let mut deep = json!({"type": "string"});
        for _ in 0..200 {
            deep = json!({"type": "array", "items": deep});
        }
        let error = prepare(&deep).unwrap_err();
        assert!(error.message().contains("at most 64 deep"), "{error}");
    }

    #[test]
    fn times_without_an_end_get_one() {
        let prepared =
            prepare(&json!({"items": [{"format": "time"}], "$defs": {"d": {"format": "date-time", "maxLength": 9}}}));
        let prepared = prepared.unwrap();
        assert_eq!((&prepared["items"][0]["maxLength"], &prepared["$defs"]["d"]["maxLength"]), (&json!(24), &json!(9)));
    }

    #[test]
    fn objects_are_closed_unless_they_say_otherwise_or_are_combined() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}, "items": true});
        let closed = prepare(&schema).unwrap();
        assert_eq!(closed["additionalProperties"], json!(false));
        assert_eq!(closed["properties"]["a"]["additionalProperties"], json!(false));
        for open in [
            json!({"properties": {}, "additionalProperties": true}),
            json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
            json!({"type": "object"}),
        ] {
            let mut prepared = prepare(&open).unwrap();
            prepared.as_object_mut().unwrap().remove(LAYOUT);
            assert_eq!(prepared, open);
        }
    }
}
