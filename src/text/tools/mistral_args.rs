//! Mistral's second notation: `[TOOL_CALLS]`, the name, `[ARGS]` and the arguments, for each call.

use super::{ToolFormat, Writing};

/// The row.
pub(super) static FORMAT: ToolFormat = ToolFormat {
    name: "mistral-args",
    matches: |source| source.contains("[TOOL_CALLS]") && source.contains("[ARGS]"),
    open: &["[TOOL_CALLS]"],
    close: &[],
    bare: false,
    // An id may follow the name: `name[CALL_ID]id[ARGS]`.
    heading: Some(|heading| heading.split('[').next().map(str::trim).filter(|name| !name.is_empty())),
    in_system: false,
    writing: Writing {
        begin: "[TOOL_CALLS]",
        before_name: "",
        before_arguments: "[ARGS]",
        after_arguments: "",
        between: Some("[TOOL_CALLS]"),
        end: "",
    },
};
