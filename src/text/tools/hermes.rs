//! Qwen and Hermes: `<tool_call>` and `</tool_call>` around an object with `name` and `arguments`.

use super::{ToolFormat, Writing};

/// The row.
pub(super) static FORMAT: ToolFormat = ToolFormat {
    name: "hermes",
    // Some use the tags around a notation of their own.
    matches: |source| {
        source.contains("<tool_call>") && !["<function=", "<arg_key>"].iter().any(|own| source.contains(own))
    },
    open: &["<tool_call>"],
    close: &["</tool_call>"],
    bare: false,
    heading: None,
    in_system: false,
    writing: Writing {
        begin: "<tool_call>\n",
        before_name: "{\"name\": \"",
        before_arguments: "\", \"arguments\": ",
        after_arguments: "}",
        between: Some("\n</tool_call>\n<tool_call>\n"),
        end: "\n</tool_call>",
    },
};
