//! A turn of a conversation.

use crate::text::ToolCall;
use serde::{Deserialize, Serialize};

/// A turn: who speaks, and what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, or a role that the template knows.
    pub role: String,
    /// The text.
    #[serde(default)]
    pub content: String,
    /// Functions that the model called in this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// In a turn of the role `tool`: the call whose result it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A turn of this role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), ..Self::default() }
    }

    /// An instruction to the model.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// A user's turn.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// The result of a call.
    pub fn tool(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(call_id.into()), ..Self::new("tool", content) }
    }

    /// An earlier answer.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}
