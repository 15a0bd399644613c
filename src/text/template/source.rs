//! Rewriting a template's source where the engine's syntax lacks something of Jinja as Hugging Face runs it: the
//! `generation` tags, and `%` after a string. Knows no values.

use crate::error::{Error, Result};

/// The filter that stands for `%` after a string.
pub(crate) const PERCENT_FILTER: &str = "_percent";

/// Words and signs outside strings that one tag may have. The engine's parser recurses over chains of operators and this
/// is far below what overflows a stack of 1 MiB; the templates of real models stay under 300.
const MAX_TAG_ITEMS: usize = 1000;

/// `source` in the engine's syntax. What it does not understand stays as it is: the engine reports it.
///
/// # Errors
/// `Template` for a tag of more than [`MAX_TAG_ITEMS`] words and signs.
pub(crate) fn rewrite(source: &str) -> Result<String> {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let end = match tag.as_bytes().get(1) {
            Some(b'#') => tag.find("#}").map_or(tag.len(), |end| end + 2),
            Some(b'%') => tag_end(tag, "%}"),
            Some(b'{') => tag_end(tag, "}}"),
            _ => 1,
        };
        let (tag, after) = tag.split_at_checked(end).unwrap_or((tag, ""));
        if tag.starts_with("{%") || tag.starts_with("{{") {
            check_items(tag)?;
            out.push_str(&expression(&statement(tag)));
        } else {
            out.push_str(tag);
        }
        rest = after;
        if let Some(raw) = raw_length(tag, rest) {
            let (raw, after) = rest.split_at_checked(raw).unwrap_or((rest, ""));
            out.push_str(raw);
            rest = after;
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn check_items(tag: &str) -> Result<()> {
    let (mut rest, mut items, mut in_word) = (tag, 0, false);
    while let Some(character) = rest.chars().next() {
        let is_word = character.is_alphanumeric() || character == '_';
        let continues = character.is_whitespace() || (is_word && in_word);
        items += usize::from(!continues);
        in_word = is_word;
        rest = rest.get(step(rest)..).unwrap_or_default();
    }
    if items <= MAX_TAG_ITEMS {
        return Ok(());
    }
    Err(Error::template(format!(
        "the chat template has a tag of {items} words and signs; expected at most {MAX_TAG_ITEMS}"
    )))
}

/// Where the tag that `text` begins with ends; strings in it may spell the closing mark.
fn tag_end(text: &str, close: &str) -> usize {
    let mut at = 2;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(close) {
            return at + close.len();
        }
        at += step(rest);
    }
    text.len()
}

/// The length of the string that `rest` begins with, or of its first character.
fn step(rest: &str) -> usize {
    string_length(rest).unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8))
}

/// The length of the quoted string that `rest` begins with, quotes included.
fn string_length(rest: &str) -> Option<usize> {
    let quote = rest.chars().next().filter(|c| *c == '"' || *c == '\'')?;
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// After a `raw` tag: the length of the text up to its end.
fn raw_length(tag: &str, rest: &str) -> Option<usize> {
    if word(tag)? != "raw" {
        return None;
    }
    let mut at = 0;
    while let Some(found) = rest.get(at..)?.find("{%") {
        at += found;
        if word(rest.get(at..)?) == Some("endraw") {
            return Some(at);
        }
        at += 2;
    }
    None
}

/// The first word of a statement tag.
fn word(tag: &str) -> Option<&str> {
    let inner = tag.strip_prefix("{%")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner).trim_start();
    let end = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
    inner.get(..end)
}

/// A `generation` block marks what the model wrote, for training; rendering passes through it.
fn statement(tag: &str) -> String {
    match word(tag) {
        Some("generation") => tag.replacen("generation", "if true", 1),
        Some("endgeneration") => tag.replacen("endgeneration", "endif", 1),
        _ => tag.to_string(),
    }
}

/// A tag in which `"text" % operand` is `"text"|filter(operand)`.
fn expression(tag: &str) -> String {
    let mut out = String::with_capacity(tag.len());
    let mut rest = tag;
    while !rest.is_empty() {
        let (part, after) = rest.split_at_checked(step(rest)).unwrap_or((rest, ""));
        out.push_str(part);
        rest = after;
        if part.len() < 2 || !part.starts_with(['"', '\'']) {
            continue;
        }
        let Some(operand) = rest.trim_start().strip_prefix('%').filter(|operand| !operand.starts_with('}')) else {
            continue;
        };
        let operand = operand.trim_start();
        let (operand, after) = operand.split_at_checked(operand_length(operand)).unwrap_or((operand, ""));
        out.push_str(&format!("|{PERCENT_FILTER}({})", expression(operand)));
        rest = after;
    }
    out
}

/// The length of the operand that `text` begins with: a value, its attributes, calls and filters.
fn operand_length(text: &str) -> usize {
    let mut at = text.len() - text.trim_start_matches(['-', '+']).len();
    at += value_length(text.get(at..).unwrap_or_default());
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let more = match rest.chars().next() {
            Some('(' | '[') => bracket_length(rest),
            Some('.') => 1 + value_length(rest.get(1..).unwrap_or_default()),
            Some('|') => {
                let name = rest.get(1..).unwrap_or_default();
                let space = name.len() - name.trim_start().len();
                1 + space + value_length(name.trim_start())
            }
            _ => return at,
        };
        at += more;
    }
}

/// The length of a string, a bracketed value, a number or a name.
fn value_length(text: &str) -> usize {
    match text.chars().next() {
        Some('(' | '[' | '{') => bracket_length(text),
        Some('"' | '\'') => string_length(text).unwrap_or(text.len()),
        _ => text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len()),
    }
}

fn bracket_length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        at += step(rest);
        match rest.chars().next() {
            Some('(' | '[' | '{') => depth += 1,
            Some(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn percent_after_a_string_becomes_a_filter() {
        for (source, expected) in [
            (r#"{{ "%s" % x }}"#, r#"{{ "%s"|_percent(x) }}"#),
            (r#"{{ "%d-%s" % (n, 'a') ~ "!" }}"#, r#"{{ "%d-%s"|_percent((n, 'a')) ~ "!" }}"#),
            (
                r#"{% set y = '%02d' % m.items()[0].x|int + 1 %}"#,
                r#"{% set y = '%02d'|_percent(m.items()[0].x|int) + 1 %}"#,
            ),
            (r#"{{ '%s' % ('%s' % 1) }}"#, r#"{{ '%s'|_percent(('%s'|_percent(1))) }}"#),
            (r#"{{ "%s %% }}" %}"#, r#"{{ "%s %% }}" %}"#),
        ] {
            assert_eq!(rewrite(source).unwrap(), expected);
        }
    }

    #[test]
    fn other_percents_and_text_outside_tags_stay() {
        for source in [
            "a % b {{ loop.index0 % 2 }} {% if 'x' %}{{ '%' }}{% endif %}",
            "{# \"a\" % b #}{% raw %}{{ \"a\" % b }}{% generation %}{% endraw %}",
            "{{ 'it\\'s' }} { % { {{ \"unclosed",
            "{% set x = 'a' -%}",
        ] {
            assert_eq!(rewrite(source).unwrap(), source);
        }
    }

    #[test]
    fn generation_tags_pass_through_with_their_whitespace_control() {
        assert_eq!(rewrite("{%- generation -%}x{% endgeneration %}").unwrap(), "{%- if true -%}x{% endif %}");
        assert_eq!(rewrite("{% generations %}").unwrap(), "{% generations %}");
    }
}
