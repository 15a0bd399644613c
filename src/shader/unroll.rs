//! Writes out the loops of WGSL that a line `// unroll` precedes. Drivers keep an array in registers only where every
//! index is a constant, and not all of them write out a loop to get there. Pure text; knows no kernel.

use crate::error::{Error, Result};

const MARK: &str = "// unroll\n";

/// Writes out marked loops, outer ones first. Their head is `for (var i = 0u; i < NAME; i++) {` with a constant that
/// `constants` has, or a number. Fails for any other head.
pub fn unroll(source: &str, constants: &[(String, usize)]) -> Result<String> {
    let mut text = source.to_owned();
    while let Some(mark) = text.find(MARK) {
        let (before, rest) = text.split_at(mark);
        let rest = &rest[MARK.len()..];
        let looped = Loop::parse(rest, constants)
            .ok_or_else(|| Error::internal(format!("expected a loop to unroll, found {:.60}", rest.trim_start())))?;
        let mut written = before.to_owned();
        for index in 0..looped.count {
            written.push('{');
            replace_word(looped.body, looped.variable, &format!("{index}u"), &mut written);
            written.push_str("}\n");
        }
        written.push_str(looped.after);
        text = written;
    }
    Ok(text)
}

/// A loop at the start of a text.
struct Loop<'a> {
    variable: &'a str,
    count: usize,
    body: &'a str,
    after: &'a str,
}

impl<'a> Loop<'a> {
    fn parse(text: &'a str, constants: &[(String, usize)]) -> Option<Self> {
        let (variable, rest) = text.trim_start().strip_prefix("for (var ")?.split_once(" = 0u; ")?;
        let (bound, rest) = rest.strip_prefix(variable)?.strip_prefix(" < ")?.split_once("; ")?;
        let body = rest.strip_prefix(variable)?.strip_prefix("++) {")?;
        let count = match bound.strip_suffix('u').and_then(|number| number.parse().ok()) {
            Some(number) => number,
            None => constants.iter().find(|(name, _)| name == bound)?.1,
        };
        let mut depth = 1;
        let end = body.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        })?;
        Some(Self { variable, count, body: body.get(..end)?, after: body.get(end + 1..)? })
    }
}

/// Appends `text` with every whole word `word` replaced.
fn replace_word(text: &str, word: &str, by: &str, to: &mut String) {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let whole = !before.ends_with(of_word) && !after.starts_with(of_word);
        to.push_str(before);
        to.push_str(if whole { by } else { word });
        rest = after;
    }
    to.push_str(rest);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::unroll;

    #[test]
    fn marked_loops_are_written_out_with_their_index_in_place() {
        let source =
            "a;\n// unroll\nfor (var i = 0u; i < N; i++) { x[i] = xi[i]; }\nb; for (var i = 0u; i < N; i++) { c; }";
        let expected = "a;\n{ x[0u] = xi[0u]; }\n{ x[1u] = xi[1u]; }\n\nb; for (var i = 0u; i < N; i++) { c; }";
        assert_eq!(unroll(source, &[("N".to_owned(), 2)]).unwrap(), expected);
        let nested = "// unroll\nfor (var i = 0u; i < 2u; i++) {// unroll\n for (var j = 0u; j < 1u; j++) {y(i, j);}}";
        assert_eq!(unroll(nested, &[]).unwrap().matches("y(").count(), 2);
        assert!(unroll(nested, &[]).unwrap().contains("y(1u, 0u);"));
    }

    #[test]
    fn a_head_that_is_not_understood_is_an_error() {
        for source in ["// unroll\nwhile (x) {}", "// unroll\nfor (var i = 0u; i < M; i++) {}", "// unroll\n"] {
            assert!(unroll(source, &[("N".to_owned(), 2)]).is_err(), "{source}");
        }
    }
}
