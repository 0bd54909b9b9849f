//! The values of a profile's fields. A value has the same word in the configuration and in the documents.

use serde::{Deserialize, Serialize};

/// The ids of tool calls that a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIds {
    /// At most 40 characters (OpenAI).
    Short,
    /// At most 64 letters, digits, `_` and `-` (Anthropic).
    Words,
    /// Nine letters and digits (Mistral).
    Nine,
}

/// The orders of messages that a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roles {
    /// Any order.
    Any,
    /// No two messages of a user in a row, and no user's message directly after a tool's result: Mistral, and the chat
    /// templates of many models.
    Alternate,
}

/// The thoughts that go back to the model of the chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thoughts {
    /// No thoughts: the provider sends none, and refuses fields that it does not know.
    None,
    /// Only what the provider marks as needed: `reasoning_details` and `extra_content`.
    Marked,
    /// The field `reasoning_content`, too (DeepSeek, Kimi).
    ReasoningContent,
    /// The field `reasoning_content` in every message of a model: DeepSeek and Moonshot refuse a message without the
    /// field, even when another model has written the message.
    Required,
}

/// The name of the field for the limit of a reply's tokens, on the wire of the chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokens {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`: the reasoning models of OpenAI refuse the older name.
    MaxCompletionTokens,
}

/// The names of the fields that providers of chat completions name differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `seed`, and PDFs as `file`.
    OpenAi,
    /// `random_seed`, and PDFs as `document_url`. Mistral refuses unknown fields.
    Mistral,
}

/// The way to cache the beginning of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// The provider decides.
    Own,
    /// Marks at the ends of what stays (Anthropic).
    Marks,
    /// A key of the conversation, which leads the requests of the conversation to the server with their beginning
    /// (OpenAI).
    Key,
}

/// The JSON Schemas of tools that a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSchemas {
    /// Every schema, as the tool's author wrote it.
    Own,
    /// One object outermost, without references, with the keywords of JSON Schema that describe values.
    Plain,
    /// As `Plain`, with few keywords, and with a type in every schema (Gemini, Moonshot).
    Typed,
}

/// The names of properties that a provider takes in the schemas of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PropertyNames {
    /// Any text but the empty text.
    Any,
    /// At most 64 letters, digits, `_`, `.` and `-` (Anthropic).
    Words,
    /// At most 64 letters, digits and `_`, without a digit at the beginning (Gemini).
    Identifiers,
}

/// The names of tools that a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolNames {
    /// At most 64 letters, digits, `_` and `-`.
    Words,
    /// As `Words`, from three characters on, and with a letter or `_` at the beginning (Gemini, Moonshot).
    LetterFirst,
}

impl CallIds {
    /// Returns the id of a call, or `own` in a form that the provider takes, when the provider would refuse the id.
    /// `own` is Everturn's id of the call.
    pub(crate) fn fit(self, id: &str, own: &str) -> String {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let fits = !id.is_empty()
            && match self {
                Self::Short => id.chars().count() <= 40,
                Self::Words => id.len() <= 64 && id.bytes().all(is_word),
                Self::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            };
        match self {
            _ if fits => id.to_owned(),
            Self::Short | Self::Words => own.to_owned(),
            // The last letters of Everturn's id are random.
            Self::Nine => {
                let letters: Vec<char> = own.chars().filter(char::is_ascii_alphanumeric).collect();
                let last = letters.iter().skip(letters.len().saturating_sub(9));
                let nine: String = last.collect();
                format!("{nine:0>9}")
            }
        }
    }
}
