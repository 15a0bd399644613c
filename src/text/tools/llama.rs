//! Llama 3: an object with `name` and `parameters` as the whole answer, some with `<|python_tag|>` before it.

use super::{ToolFormat, Writing};

/// The row.
pub(super) static FORMAT: ToolFormat = ToolFormat {
    name: "llama-3",
    matches: |source| source.contains("<|python_tag|>") || source.contains("\"parameters\": dictionary"),
    open: &["<|python_tag|>"],
    close: &[],
    bare: true,
    heading: None,
    in_system: false,
    writing: Writing {
        begin: "",
        before_name: "{\"name\": \"",
        before_arguments: "\", \"parameters\": ",
        after_arguments: "}",
        // These models are trained on one call a turn.
        between: None,
        end: "",
    },
};
