//! Methods of Python's strings, dictionaries and lists that templates call, where the library of such methods has none
//! or takes no keyword arguments, and the `%` operator on strings.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

/// The names of the parameters of methods that templates call by keyword.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("split", &["sep", "maxsplit"]),
    ("rsplit", &["sep", "maxsplit"]),
    ("splitlines", &["keepends"]),
    ("replace", &["old", "new", "count"]),
];

/// A method that the template engine itself does not know.
pub(crate) fn unknown_method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let args = &positional(method, args)?;
    let ours = match value.kind() {
        ValueKind::String => string_method(value.as_str().unwrap_or_default(), method, args)?,
        ValueKind::Seq | ValueKind::Iterable => sequence_method(value, method, args)?,
        ValueKind::Map if method == "copy" => {
            let () = from_args(args)?;
            Some(value.clone())
        }
        _ => None,
    };
    match ours {
        Some(result) => Ok(result),
        None => pycompat::unknown_method_callback(state, value, method, args),
    }
}

/// `args` with those given by keyword put in their places.
fn positional(method: &str, args: &[Value]) -> Result<Vec<Value>, Error> {
    let Some((_, names)) = PARAMETERS.iter().find(|(name, _)| *name == method) else { return Ok(args.to_vec()) };
    let Some((kwargs, rest)) = args.split_last().filter(|(last, _)| last.is_kwargs()) else { return Ok(args.to_vec()) };
    let kwargs = Kwargs::try_from(kwargs.clone())?;
    let mut all = rest.to_vec();
    for name in names.iter().skip(rest.len()) {
        all.push(kwargs.get::<Option<Value>>(name)?.unwrap_or_else(|| Value::from(())));
    }
    kwargs.assert_all_used()?;
    while all.len() > rest.len() && all.last().is_some_and(Value::is_none) {
        all.pop();
    }
    Ok(all)
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "rsplit" => {
            let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
            rsplit(text, separator, most)?
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let from_right = method == "rpartition";
            let found = if from_right { text.rsplit_once(separator) } else { text.split_once(separator) };
            match found {
                Some((before, after)) => three(before, separator, after),
                None if from_right => three("", "", text),
                None => three(text, "", ""),
            }
        }
        "index" | "rindex" => {
            let (needle,): (&str,) = from_args(args)?;
            let at = if method == "index" { text.find(needle) } else { text.rfind(needle) };
            let at = at.ok_or_else(|| invalid("substring not found"))?;
            Value::from(text.get(..at).unwrap_or_default().chars().count())
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            let n_zeros = width.min(1 << 16).saturating_sub(text.chars().count());
            Value::from(format!("{sign}{}{digits}", "0".repeat(n_zeros)))
        }
        "ljust" | "rjust" | "center" => pad(text, method, args)?,
        "casefold" => {
            let () = from_args(args)?;
            Value::from(text.to_lowercase())
        }
        "swapcase" => {
            let () = from_args(args)?;
            let swapped: String = text
                .chars()
                .flat_map(|c| {
                    if c.is_uppercase() { c.to_lowercase().collect::<Vec<_>>() } else { c.to_uppercase().collect() }
                })
                .collect();
            Value::from(swapped)
        }
        _ => return Ok(None),
    }))
}

fn three(before: &str, separator: &str, after: &str) -> Value {
    Value::from(Tuple::from([before, separator, after].map(Value::from)))
}

fn rsplit(text: &str, separator: Option<&str>, most: Option<i64>) -> Result<Value, Error> {
    let most = most.and_then(|most| usize::try_from(most).ok());
    let mut parts: Vec<&str> = match (separator, most) {
        (Some(""), _) => return Err(invalid("empty separator")),
        (Some(separator), None) => text.rsplit(separator).collect(),
        (Some(separator), Some(most)) => text.rsplitn(most.saturating_add(1), separator).collect(),
        (None, most) => {
            let mut words = Vec::new();
            let mut rest = text.trim_end();
            while !rest.is_empty() {
                let start = rest.rfind(char::is_whitespace).filter(|_| most.is_none_or(|most| words.len() < most));
                let width = start.and_then(|at| rest.get(at..)?.chars().next()).map_or(0, char::len_utf8);
                let (before, word) = match start {
                    Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + width..).unwrap_or_default()),
                    None => ("", rest),
                };
                words.push(word);
                rest = before.trim_end();
            }
            words
        }
    };
    parts.reverse();
    Ok(parts.into_iter().map(Value::from).collect())
}

fn pad(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (width, fill): (usize, Option<&str>) = from_args(args)?;
    let n = width.min(1 << 16).saturating_sub(text.chars().count());
    let n_left = match method {
        "rjust" => n,
        // Python puts the odd one out on the left when the width is odd too.
        "center" => n / 2 + (n & width & 1),
        _ => 0,
    };
    let fill = fill.unwrap_or(" ");
    Ok(Value::from(format!("{}{text}{}", fill.repeat(n_left), fill.repeat(n - n_left))))
}

fn sequence_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            let at = value.try_iter()?.position(|item| item == *wanted);
            Value::from(at.ok_or_else(|| invalid(format!("{wanted:?} is not in list")))?)
        }
        "copy" => {
            let () = from_args(args)?;
            value.try_iter()?.collect()
        }
        "append" | "extend" | "insert" | "pop" | "remove" | "sort" | "reverse" | "clear" => {
            // Hugging Face runs templates in a sandbox in which values cannot be changed either.
            return Err(invalid(format!("a list cannot be changed by {method}")));
        }
        _ => return Ok(None),
    }))
}

/// Fails for a conversion that pads to more than 65 536 characters, or takes its width from the arguments: the work of
/// padding is not counted against a template.
fn check_widths(text: &str) -> Result<(), Error> {
    for conversion in text.split('%').skip(1) {
        let after_name = conversion.strip_prefix('(').and_then(|named| named.split_once(')')).map(|(_, rest)| rest);
        let specification = after_name.unwrap_or(conversion).trim_start_matches(['-', '+', ' ', '#', '0']);
        let length = specification.find(|c: char| !matches!(c, '0'..='9' | '.' | '*')).unwrap_or(specification.len());
        let mut numbers =
            specification.get(..length).unwrap_or_default().split('.').filter(|number| !number.is_empty());
        if !numbers.all(|number| number.parse::<u32>().is_ok_and(|width| width <= 1 << 16)) {
            return Err(invalid(format!(
                "expected a width of at most 65536 in a conversion, found %{specification:.20}"
            )));
        }
    }
    Ok(())
}

/// The filter `format`: Python's `text % arguments`.
pub(crate) fn format_filter(text: &str, arguments: minijinja::value::Rest<Value>) -> Result<String, Error> {
    check_widths(text)?;
    format(FormatStyle::Printf, text, &arguments)
}

/// Python's `text % argument`.
pub(crate) fn percent(text: &str, argument: &Value) -> Result<String, Error> {
    check_widths(text)?;
    if argument.is_tuple() {
        let args: Vec<Value> = argument.try_iter()?.collect();
        return format(FormatStyle::Printf, text, &args);
    }
    format(FormatStyle::Printf, text, std::slice::from_ref(argument))
}

/// The test `callable`: functions and macros.
pub(crate) fn is_callable(value: &Value) -> bool {
    let is_macro = || value.len() == Some(3) && value.to_string().starts_with("<macro ");
    value.as_object().is_some() && (value.kind() == ValueKind::Plain || (value.kind() == ValueKind::Map && is_macro()))
}

fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail.into())
}
