//! DeepSeek V3 and R1: each call between its own tags, the name on a line before the arguments in a fence; newer ones put
//! the arguments right behind the name.

use super::{ToolFormat, Writing};

const CALL: &str = "<｜tool▁call▁begin｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";

/// The row.
pub(super) static FORMAT: ToolFormat = ToolFormat {
    name: "deepseek",
    matches: |source| source.contains("<｜tool▁calls▁begin｜>"),
    open: &["<｜tool▁calls▁begin｜>"],
    close: &["<｜tool▁calls▁end｜>"],
    bare: false,
    heading: Some(name_of),
    in_system: false,
    writing: Writing {
        begin: "<｜tool▁calls▁begin｜>",
        before_name: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        before_arguments: "\n```json\n",
        after_arguments: "\n```<｜tool▁call▁end｜>",
        between: Some("\n"),
        end: "<｜tool▁calls▁end｜>",
    },
};

fn name_of(heading: &str) -> Option<&str> {
    let (before, after) = heading.rsplit(CALL).next()?.split_once(SEPARATOR)?;
    let first_line = after.trim_start().lines().next().unwrap_or_default().trim();
    Some(if first_line.is_empty() { before.trim() } else { first_line }).filter(|name| !name.is_empty())
}
