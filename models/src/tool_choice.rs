//! The tool that a model must, or must not, call in the first step of a turn.

use serde_json::Value;

/// A demand on the tool calls of one reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model must call a tool.
    Required,
    /// The model may call no tool.
    None,
    /// The model must call the tool of this name.
    Tool(String),
}

impl ToolChoice {
    /// The words of the configuration. Every other text is the name of a tool.
    pub const WORDS: [&str; 3] = ["auto", "required", "none"];

    /// Returns the demand of a text in an agent's definition.
    pub fn read(text: &str) -> Self {
        match text {
            "auto" => Self::Auto,
            "required" => Self::Required,
            "none" => Self::None,
            name => Self::Tool(name.to_owned()),
        }
    }

    /// Returns the demand as OpenAI's wires write it. `tool` writes the demand for one tool.
    pub(crate) fn on_openai(&self, tool: impl FnOnce(&str) -> Value) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::Required => "required".into(),
            Self::None => "none".into(),
            Self::Tool(name) => tool(name),
        }
    }

    /// True when the model must call a tool.
    pub(crate) fn is_forced(&self) -> bool {
        matches!(self, Self::Required | Self::Tool(_))
    }
}
