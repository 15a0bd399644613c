//! Mistral's first notation: `[TOOL_CALLS]` and a list of objects with `name` and `arguments`.

use super::{ToolFormat, Writing};

/// The row.
pub(super) static FORMAT: ToolFormat = ToolFormat {
    name: "mistral",
    matches: |source| source.contains("[TOOL_CALLS]"),
    open: &["[TOOL_CALLS]"],
    close: &[],
    bare: false,
    heading: None,
    in_system: false,
    writing: Writing {
        begin: "[TOOL_CALLS][",
        before_name: "{\"name\": \"",
        before_arguments: "\", \"arguments\": ",
        after_arguments: "}",
        between: Some(", "),
        end: "]",
    },
};
