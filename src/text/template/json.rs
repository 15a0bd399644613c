//! The filter `tojson` as Python's `json.dumps` writes: templates put tools into prompts with it, and models were trained
//! on exactly that layout.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// How deep values may nest.
const MOST_DEPTH: usize = 100;

/// The layout of `json.dumps`.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

impl Default for Layout {
    fn default() -> Self {
        let (item_separator, key_separator) = (", ".to_string(), ": ".to_string());
        Self { ensure_ascii: false, indent: None, item_separator, key_separator, sort_keys: false }
    }
}

impl Layout {
    /// The layout that a template's arguments ask for; a single positional argument is the indent, as in Jinja.
    fn from_arguments(positional: Option<&Value>, kwargs: &Kwargs) -> Result<Self, Error> {
        let mut layout = Self::default();
        if let Some(indent) = kwargs.get::<Option<Value>>("indent")?.as_ref().or(positional) {
            layout.indent = match (indent.as_str(), indent.as_usize()) {
                _ if indent.is_none() || indent.kind() == ValueKind::Bool => None,
                (Some(text), _) => Some(text.to_string()),
                (None, Some(n)) => Some(" ".repeat(n.min(64))),
                (None, None) => Some(String::new()),
            };
        }
        if layout.indent.is_some() {
            layout.item_separator = ",".to_string();
        }
        layout.ensure_ascii = kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
        layout.sort_keys = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
        if let Some(separators) = kwargs.get::<Option<Value>>("separators")?.filter(|value| !value.is_none()) {
            let pair: Vec<String> =
                separators.try_iter()?.filter_map(|part| part.as_str().map(str::to_string)).collect();
            let [item, key] = pair.as_slice() else {
                return Err(invalid("separators should be two strings"));
            };
            (layout.item_separator, layout.key_separator) = (item.clone(), key.clone());
        }
        Ok(layout)
    }
}

fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail.into())
}

/// The filter itself.
pub(crate) fn tojson(value: &Value, positional: Option<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let layout = Layout::from_arguments(positional.as_ref(), &kwargs)?;
    kwargs.assert_all_used()?;
    to_json(value, &layout)
}

/// `value` as `json.dumps` writes it.
pub(crate) fn to_json(value: &Value, layout: &Layout) -> Result<String, Error> {
    let mut out = String::new();
    write(value, layout, 0, &mut out)?;
    Ok(out)
}

fn write(value: &Value, layout: &Layout, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MOST_DEPTH {
        return Err(invalid(format!("a value nested deeper than {MOST_DEPTH} cannot be written as JSON")));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => quote(value.as_str().unwrap_or_default(), layout.ensure_ascii, out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            let write_item = |item: &Value, out: &mut String| write(item, layout, depth + 1, out);
            write_all(['[', ']'], &items, layout, depth, out, write_item)?;
        }
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()? {
                let item = value.get_item(&key)?;
                entries.push((key_text(&key)?, item));
            }
            if layout.sort_keys {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
            }
            let write_entry = |(key, item): &(String, Value), out: &mut String| {
                quote(key, layout.ensure_ascii, out);
                out.push_str(&layout.key_separator);
                write(item, layout, depth + 1, out)
            };
            write_all(['{', '}'], &entries, layout, depth, out, write_entry)?;
        }
        other => return Err(invalid(format!("a value of type {other} cannot be written as JSON"))),
    }
    Ok(())
}

fn write_all<V>(
    [open, close]: [char; 2],
    items: &[V],
    layout: &Layout,
    depth: usize,
    out: &mut String,
    mut write_item: impl FnMut(&V, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    let new_line = |depth: usize, out: &mut String| {
        if let Some(indent) = &layout.indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    };
    out.push(open);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(&layout.item_separator);
        }
        new_line(depth + 1, out);
        write_item(item, out)?;
    }
    if !items.is_empty() {
        new_line(depth, out);
    }
    out.push(close);
    Ok(())
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_string()),
        ValueKind::None => Ok("null".to_string()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_string()),
        ValueKind::Number => Ok(number(key)),
        other => Err(invalid(format!("a key of type {other} cannot be written as JSON"))),
    }
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), python_float)
}

/// A float as Python's `repr` writes it: the fewest digits that read back the same, with an exponent outside 1e-4 … 1e16.
pub(crate) fn python_float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_string();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn quote(text: &str, ensure_ascii: bool, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if u32::from(control) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            // The private characters of plane 16 stand for guarded text while a template runs.
            wide if ensure_ascii && !wide.is_ascii() && u32::from(wide) < 0x10_0000 => {
                wide.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn dump(value: &serde_json::Value, layout: &Layout) -> String {
        to_json(&Value::from(minijinja::value::Serde(value)), layout).unwrap()
    }

    #[test]
    fn the_layout_is_pythons() {
        let plain = Layout::default();
        assert_eq!(
            dump(&json!({"b": "<é>'&", "a": [1, null, true]}), &plain),
            r#"{"b": "<é>'&", "a": [1, null, true]}"#
        );
        assert_eq!(
            dump(&json!([1.0, 1.5, -0.0, 0.1, 1e20, 1.5e-7, 1e16, 123456789012345680.0, 1e-4, 1e15]), &plain),
            "[1.0, 1.5, -0.0, 0.1, 1e+20, 1.5e-07, 1e+16, 1.2345678901234568e+17, 0.0001, 1000000000000000.0]"
        );
        assert_eq!(
            dump(&json!("\u{0}\u{8}\u{c}\n\r\t\"\\\u{7f}/é🙂"), &plain),
            "\"\\u0000\\b\\f\\n\\r\\t\\\"\\\\\u{7f}/é🙂\""
        );
        let ascii = Layout { ensure_ascii: true, ..Layout::default() };
        assert_eq!(dump(&json!("é🙂a"), &ascii), r#""\u00e9\ud83d\ude42a""#);
        let sorted = Layout { sort_keys: true, ..Layout::default() };
        assert_eq!(dump(&json!({"b": 1, "a": {"d": 1, "c": 2}}), &sorted), r#"{"a": {"c": 2, "d": 1}, "b": 1}"#);
    }

    #[test]
    fn an_indent_puts_items_on_lines_and_leaves_empty_containers_whole() {
        let layout = Layout { indent: Some("    ".into()), item_separator: ",".into(), ..Layout::default() };
        let value = json!({"foo": "bar", "e": {}, "l": [], "n": [1, {"x": 2}]});
        let expected = "{\n    \"foo\": \"bar\",\n    \"e\": {},\n    \"l\": [],\n    \"n\": [\n        1,\n        {\n            \"x\": 2\n        }\n    ]\n}";
        assert_eq!(dump(&value, &layout), expected);
    }

    #[test]
    fn a_value_that_nests_too_deep_is_an_error() {
        let mut value = json!(1);
        for _ in 0..200 {
            value = json!([value]);
        }
        assert!(to_json(&Value::from(minijinja::value::Serde(&value)), &Layout::default()).is_err());
    }
}
