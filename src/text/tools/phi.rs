//! Phi 4 mini: a list of objects with `name` and `arguments` between `<|tool_call|>` and `<|/tool_call|>`.

use super::{ToolFormat, Writing};

/// The row.
pub(super) static FORMAT: ToolFormat = ToolFormat {
    name: "phi-4-mini",
    matches: |source| source.contains("<|tool_call|>"),
    open: &["<|tool_call|>"],
    close: &["<|/tool_call|>"],
    bare: false,
    heading: None,
    in_system: true,
    writing: Writing {
        begin: "<|tool_call|>[",
        before_name: "{\"name\": \"",
        before_arguments: "\", \"arguments\": ",
        after_arguments: "}",
        between: Some(", "),
        end: "]<|/tool_call|>",
    },
};
