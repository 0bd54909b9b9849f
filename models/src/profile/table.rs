//! The table of profiles: the fields that kinds, hosts and models set. `docs/providers/profiles.md` is made from the
//! table.

use super::{
    settings::ProfileSettings,
    values::{
        Cache, CallIds, Dialect, MaxTokens, PropertyNames, Roles, Thoughts, ToolNames, ToolSchemas,
    },
};
use crate::kind::ProviderKind;

/// A row of the table: the providers to which it applies, and their fields.
pub(super) struct Row {
    pub(super) kinds: &'static [ProviderKind],
    /// The ends of hosts; empty: any host.
    pub(super) hosts: &'static [&'static str],
    /// Parts of the model's name, in small letters; empty: any model.
    pub(super) models: &'static [&'static str],
    pub(super) set: ProfileSettings,
}

const NONE: ProfileSettings = ProfileSettings::NONE;

/// The fields of OpenAI's models, at OpenAI and at Azure.
const OPENAI: ProfileSettings = ProfileSettings {
    roles: Some(Roles::Any),
    think_tags: Some(false),
    thoughts: Some(Thoughts::None),
    cache: Some(Cache::Key),
    ..NONE
};

/// The fields for the tools of Moonshot's models.
const MOONSHOT: ProfileSettings = ProfileSettings {
    tool_schemas: Some(ToolSchemas::Typed),
    property_names: Some(PropertyNames::Words),
    tool_names: Some(ToolNames::LetterFirst),
    ..NONE
};

const CHAT: &[ProviderKind] = &[ProviderKind::OpenAi];
const CHAT_AND_AZURE: &[ProviderKind] = &[ProviderKind::OpenAi, ProviderKind::Azure];

/// The table. The last row that fits sets a field.
pub(super) const ROWS: &[Row] = &[
    Row {
        kinds: CHAT,
        hosts: &["api.openai.com"],
        models: &[],
        set: OPENAI,
    },
    Row {
        kinds: &[ProviderKind::Azure],
        hosts: &[],
        models: &[],
        set: OPENAI,
    },
    Row {
        kinds: CHAT_AND_AZURE,
        hosts: &[],
        models: &["gpt-5", "gpt-6", "o1", "o3", "o4"],
        set: ProfileSettings {
            max_tokens: Some(MaxTokens::MaxCompletionTokens),
            ..NONE
        },
    },
    Row {
        kinds: CHAT,
        hosts: &["api.mistral.ai"],
        models: &[],
        set: ProfileSettings {
            call_ids: Some(CallIds::Nine),
            thoughts: Some(Thoughts::None),
            // Mistral counts the tokens of every stream.
            stream_options: Some(false),
            dialect: Some(Dialect::Mistral),
            ..NONE
        },
    },
    Row {
        kinds: CHAT,
        hosts: &[],
        models: &[
            "mistral",
            "mixtral",
            "magistral",
            "ministral",
            "codestral",
            "devstral",
            "pixtral",
        ],
        set: ProfileSettings {
            call_ids: Some(CallIds::Nine),
            ..NONE
        },
    },
    Row {
        kinds: CHAT,
        hosts: &[],
        models: &["deepseek", "kimi"],
        set: ProfileSettings {
            thoughts: Some(Thoughts::ReasoningContent),
            ..NONE
        },
    },
    Row {
        kinds: CHAT,
        hosts: &["api.deepseek.com", "api.moonshot.ai", "api.moonshot.cn"],
        models: &[],
        set: ProfileSettings {
            thoughts: Some(Thoughts::Required),
            ..NONE
        },
    },
    // The rules for tools, at the providers and behind routers that lead to the providers.
    Row {
        kinds: CHAT,
        hosts: &[],
        models: &["kimi", "moonshot"],
        set: MOONSHOT,
    },
    Row {
        kinds: CHAT,
        hosts: &["api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"],
        models: &[],
        set: MOONSHOT,
    },
    Row {
        kinds: CHAT,
        hosts: &[],
        models: &["gemini"],
        set: ProfileSettings {
            tool_schemas: Some(ToolSchemas::Typed),
            property_names: Some(PropertyNames::Identifiers),
            tool_names: Some(ToolNames::LetterFirst),
            ..NONE
        },
    },
    Row {
        kinds: CHAT,
        hosts: &[],
        models: &["claude"],
        set: ProfileSettings {
            property_names: Some(PropertyNames::Words),
            ..NONE
        },
    },
    Row {
        kinds: CHAT,
        hosts: &["api.x.ai"],
        models: &[],
        set: ProfileSettings {
            max_tools: Some(200),
            ..NONE
        },
    },
];

impl Row {
    /// True when the row applies to a model at a provider. `model` is in small letters.
    pub(super) fn fits(&self, kind: ProviderKind, host: &str, model: &str) -> bool {
        let is_host = |end: &&str| host == *end || host.ends_with(&format!(".{end}"));
        let is_model = |part: &&str| model.contains(part);
        self.kinds.contains(&kind)
            && (self.hosts.is_empty() || self.hosts.iter().any(is_host))
            && (self.models.is_empty() || self.models.iter().any(is_model))
    }
}
