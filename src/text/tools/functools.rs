//! Firefunction and Phi 4: `functools` and a list of objects with `name` and `arguments`.

use super::{ToolFormat, Writing};

/// The row.
pub(super) static FORMAT: ToolFormat = ToolFormat {
    name: "functools",
    matches: |source| source.contains("functools["),
    open: &["functools["],
    close: &[],
    bare: false,
    heading: None,
    in_system: false,
    writing: Writing {
        begin: "functools[",
        before_name: "{\"name\": \"",
        before_arguments: "\", \"arguments\": ",
        after_arguments: "}",
        between: Some(", "),
        end: "]",
    },
};
