//! The fields of a profile that a row of the table sets, or an operator for a provider.

use serde::Serialize;

use super::values::{
    Cache, CallIds, Dialect, MaxTokens, PropertyNames, Roles, Thoughts, ToolNames, ToolSchemas,
};
use crate::kind::ProviderKind;

/// The fields of a profile with a value of their own; `None`: the field keeps its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ProfileSettings {
    /// The ids of tool calls that the provider takes.
    pub call_ids: Option<CallIds>,
    /// The orders of messages that the provider takes.
    pub roles: Option<Roles>,
    /// The thoughts that go back to the model.
    pub thoughts: Option<Thoughts>,
    /// Whether thoughts may be in the text, within `<think>` tags.
    pub think_tags: Option<bool>,
    /// Whether the provider takes `stream_options`.
    pub stream_options: Option<bool>,
    /// The name of the field for the limit of a reply's tokens.
    pub max_tokens: Option<MaxTokens>,
    /// The names of the fields that providers of chat completions name differently.
    pub dialect: Option<Dialect>,
    /// The way to cache the beginning of a request.
    pub cache: Option<Cache>,
    /// The JSON Schemas of tools that the provider takes.
    pub tool_schemas: Option<ToolSchemas>,
    /// The names of properties that the provider takes in the schemas of tools.
    pub property_names: Option<PropertyNames>,
    /// The names of tools that the provider takes.
    pub tool_names: Option<ToolNames>,
    /// The most tools of a request.
    pub max_tools: Option<u32>,
}

impl ProfileSettings {
    /// No field has a value of its own.
    pub(super) const NONE: Self = Self {
        call_ids: None,
        roles: None,
        thoughts: None,
        think_tags: None,
        stream_options: None,
        max_tokens: None,
        dialect: None,
        cache: None,
        tool_schemas: None,
        property_names: None,
        tool_names: None,
        max_tools: None,
    };
}

/// The name of a field that a provider's profile has in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileField {
    /// [`ProfileSettings::call_ids`].
    CallIds,
    /// [`ProfileSettings::roles`].
    Roles,
    /// [`ProfileSettings::thoughts`].
    Thoughts,
    /// [`ProfileSettings::think_tags`].
    ThinkTags,
    /// [`ProfileSettings::stream_options`].
    StreamOptions,
    /// [`ProfileSettings::max_tokens`].
    MaxTokens,
    /// [`ProfileSettings::dialect`].
    Dialect,
    /// [`ProfileSettings::cache`].
    Cache,
    /// [`ProfileSettings::tool_schemas`].
    ToolSchemas,
    /// [`ProfileSettings::property_names`].
    PropertyNames,
    /// [`ProfileSettings::tool_names`].
    ToolNames,
    /// [`ProfileSettings::max_tools`].
    MaxTools,
}

impl ProfileField {
    /// Returns the kinds of providers whose adapter reads the field. Other kinds ignore the field.
    pub fn kinds(self) -> &'static [ProviderKind] {
        match self {
            Self::CallIds
            | Self::ToolSchemas
            | Self::PropertyNames
            | Self::ToolNames
            | Self::MaxTools => &ProviderKind::ALL,
            Self::ThinkTags => &[
                ProviderKind::OpenAi,
                ProviderKind::Azure,
                ProviderKind::Anthropic,
                ProviderKind::Gemini,
            ],
            Self::Roles
            | Self::Thoughts
            | Self::StreamOptions
            | Self::MaxTokens
            | Self::Dialect => &[ProviderKind::OpenAi, ProviderKind::Azure],
            Self::Cache => &[
                ProviderKind::OpenAi,
                ProviderKind::OpenAiResponses,
                ProviderKind::Azure,
                ProviderKind::Anthropic,
            ],
        }
    }

    /// Returns the field's key in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CallIds => "call_ids",
            Self::Roles => "roles",
            Self::Thoughts => "thoughts",
            Self::ThinkTags => "think_tags",
            Self::StreamOptions => "stream_options",
            Self::MaxTokens => "max_tokens",
            Self::Dialect => "dialect",
            Self::Cache => "cache",
            Self::ToolSchemas => "tool_schemas",
            Self::PropertyNames => "property_names",
            Self::ToolNames => "tool_names",
            Self::MaxTools => "max_tools",
        }
    }
}
