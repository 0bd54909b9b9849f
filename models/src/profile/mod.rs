//! The profiles of providers: what differs between providers of one wire, as data.
//!
//! - `values`: the values of the fields
//! - `settings`: fields with a value of their own
//! - `table`: the rows, chosen by the provider's kind, the host of its address, and the model's name
//!
//! The operator's settings of a provider (`[providers.NAME.profile]`) win over the table. Must not be here: the form of a
//! request or a reply.

mod settings;
mod table;
#[cfg(test)]
mod tests;
mod values;

pub use settings::{ProfileField, ProfileSettings};
pub use values::{
    Cache, CallIds, Dialect, MaxTokens, PropertyNames, Roles, Thoughts, ToolNames, ToolSchemas,
};

use serde::Serialize;

use crate::kind::ProviderKind;

/// The forms of requests that a provider takes, and the forms of its replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// The provider's wire.
    #[serde(skip)]
    pub kind: ProviderKind,
    /// The ids of tool calls that the provider takes.
    pub call_ids: CallIds,
    /// The orders of messages that the provider takes.
    pub roles: Roles,
    /// The thoughts that go back to the model with the tool calls that followed them.
    pub thoughts: Thoughts,
    /// True when thoughts may be in the text, within `<think>` tags.
    pub think_tags: bool,
    /// True when the provider takes `stream_options`, and counts the tokens of a stream only with this field.
    pub stream_options: bool,
    /// The name of the field for the limit of a reply's tokens.
    pub max_tokens: MaxTokens,
    /// The names of the fields that providers of chat completions name differently.
    pub dialect: Dialect,
    /// The way to cache the beginning of a request.
    pub cache: Cache,
    /// The JSON Schemas of tools that the provider takes.
    pub tool_schemas: ToolSchemas,
    /// The names of properties that the provider takes in the schemas of tools.
    pub property_names: PropertyNames,
    /// The names of tools that the provider takes.
    pub tool_names: ToolNames,
    /// The most tools of a request.
    pub max_tools: u32,
}

impl Profile {
    /// Returns the profile of a model at a provider. `own` are the operator's settings of the provider.
    pub fn of(kind: ProviderKind, host: &str, model: &str, own: ProfileSettings) -> Self {
        let model = model.to_lowercase();
        let rows = table::ROWS.iter();
        let rows = rows.filter(|row| row.fits(kind, host, &model));
        let profile = rows.fold(Self::of_kind(kind), |profile, row| profile.with(row.set));
        profile.with(own)
    }

    /// Returns the profile with the settings. The patterns have no `..`, so a field without a setting does not compile.
    fn with(self, settings: ProfileSettings) -> Self {
        let Self {
            kind,
            call_ids,
            roles,
            thoughts,
            think_tags,
            stream_options,
            max_tokens,
            dialect,
            cache,
            tool_schemas,
            property_names,
            tool_names,
            max_tools,
        } = self;
        Self {
            kind,
            call_ids: settings.call_ids.unwrap_or(call_ids),
            roles: settings.roles.unwrap_or(roles),
            thoughts: settings.thoughts.unwrap_or(thoughts),
            think_tags: settings.think_tags.unwrap_or(think_tags),
            stream_options: settings.stream_options.unwrap_or(stream_options),
            max_tokens: settings.max_tokens.unwrap_or(max_tokens),
            dialect: settings.dialect.unwrap_or(dialect),
            cache: settings.cache.unwrap_or(cache),
            tool_schemas: settings.tool_schemas.unwrap_or(tool_schemas),
            property_names: settings.property_names.unwrap_or(property_names),
            tool_names: settings.tool_names.unwrap_or(tool_names),
            max_tools: settings.max_tools.unwrap_or(max_tools),
        }
    }

    /// Returns the profile of an unknown provider of a kind.
    fn of_kind(kind: ProviderKind) -> Self {
        let is_chat = matches!(kind, ProviderKind::OpenAi | ProviderKind::Azure);
        Self {
            kind,
            call_ids: match kind {
                ProviderKind::OpenAi
                | ProviderKind::Azure
                | ProviderKind::OpenAiResponses
                | ProviderKind::Gemini => CallIds::Short,
                ProviderKind::Anthropic => CallIds::Words,
            },
            roles: if is_chat {
                Roles::Alternate
            } else {
                Roles::Any
            },
            thoughts: Thoughts::Marked,
            think_tags: kind == ProviderKind::OpenAi,
            stream_options: true,
            max_tokens: MaxTokens::MaxTokens,
            dialect: Dialect::OpenAi,
            cache: match kind {
                ProviderKind::Anthropic => Cache::Marks,
                ProviderKind::OpenAiResponses => Cache::Key,
                // Most servers of chat completions do not know the key, and some refuse unknown fields.
                ProviderKind::OpenAi | ProviderKind::Azure | ProviderKind::Gemini => Cache::Own,
            },
            tool_schemas: match kind {
                ProviderKind::Gemini => ToolSchemas::Typed,
                _ => ToolSchemas::Plain,
            },
            property_names: match kind {
                ProviderKind::Anthropic => PropertyNames::Words,
                ProviderKind::Gemini => PropertyNames::Identifiers,
                _ => PropertyNames::Any,
            },
            tool_names: match kind {
                ProviderKind::Gemini => ToolNames::LetterFirst,
                _ => ToolNames::Words,
            },
            max_tools: match kind {
                // Anthropic documents no limit. So many schemas take about half of a window of 200,000 tokens.
                ProviderKind::Anthropic => 256,
                // The documented limit of OpenAI, Azure, Groq, Moonshot and Vertex.
                _ => 128,
            },
        }
    }
}
