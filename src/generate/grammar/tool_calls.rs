//! The grammar of an answer that has to call functions, in one family's notation.

use std::fmt::Write as _;

use serde_json::json;

use super::{Grammar, prepare_schema};
use crate::error::{Context as _, Result};
use crate::text::{Tool, Writing};

/// The most calls of an answer that has to make some.
const MOST_CALLS: usize = 16;

impl Grammar {
    /// Of one call or more of these tools; with `or_text`, of text instead that does not begin like a call.
    ///
    /// # Errors
    /// `invalid-argument` for a tool whose parameters are no schema that can be followed.
    pub fn of_calls(tools: &[Tool], writing: &Writing, or_text: bool) -> Result<Self> {
        let quote = |text: &str| json!(text).to_string();
        let mut lark = String::from("start: calls");
        if or_text {
            lark.push_str(" | TEXT\nTEXT: /[^<](.|\\n)*/");
        }
        lark.push_str("\ncalls:");
        // Empty strings are no symbols.
        let symbols = |text: &str| if text.is_empty() { String::new() } else { format!(" {}", quote(text)) };
        let more = match writing.between {
            Some(between) => format!(" ({} call){{0,{}}}", quote(between), MOST_CALLS - 1),
            None => String::new(),
        };
        let _ = write!(lark, "{} call{more}{}", symbols(writing.begin), symbols(writing.end));
        let alternatives: Vec<String> = (0..tools.len()).map(|index| format!("call_{index}")).collect();
        let _ = write!(lark, "\ncall: {}", alternatives.join(" | "));
        for (index, tool) in tools.iter().enumerate() {
            let place = || format!("tools[{index}].function.parameters");
            let schema = prepare_schema(&tool.parameters).at(place)?;
            let head = format!("{}{}{}", writing.before_name, tool.name, writing.before_arguments);
            let tail = symbols(writing.after_arguments);
            let _ = write!(lark, "\ncall_{index}: {} arguments_{index}{tail}", quote(&head));
            let _ = write!(lark, "\narguments_{index}: %json {schema}");
        }
        lark.push('\n');
        Ok(Self::Calls(lark))
    }
}
