//! The profiles of providers: what differs between providers of one wire, as data in one table.
//!
//! A row is chosen by the provider's kind, the host of its address, and the model's name; the last row that fits sets a
//! field. Must not be here: the form of a request or a reply.

use crate::provider::ProviderKind;

/// The forms of requests that a provider takes, and the forms of its replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The provider's wire.
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
}

/// The ids of tool calls that a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIds {
    /// At most 40 characters (OpenAI).
    Short,
    /// At most 64 letters, digits, `_` and `-` (Anthropic).
    Words,
    /// Nine letters and digits (Mistral).
    Nine,
}

/// The orders of messages that a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roles {
    /// Any order.
    Any,
    /// No two messages of a user in a row, and no user's message directly after a tool's result: Mistral, and the chat
    /// templates of many models.
    Alternate,
}

/// The thoughts that go back to the model of the chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxTokens {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`: the reasoning models of OpenAI refuse the older name.
    MaxCompletionTokens,
}

/// The names of the fields that providers of chat completions name differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `seed`, and PDFs as `file`.
    OpenAi,
    /// `random_seed`, and PDFs as `document_url`. Mistral refuses unknown fields.
    Mistral,
}

/// The way to cache the beginning of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The provider decides.
    Own,
    /// Marks at the ends of what stays (Anthropic).
    Marks,
    /// A key of the conversation, which leads the requests of the conversation to the server with their beginning
    /// (OpenAI).
    Key,
}

/// A row of the table: the providers to which it applies, and its fields.
struct Row {
    kinds: &'static [ProviderKind],
    /// The ends of hosts; empty: any host.
    hosts: &'static [&'static str],
    /// Parts of the model's name, in small letters; empty: any model.
    models: &'static [&'static str],
    set: fn(&mut Profile),
}

const CHAT: &[ProviderKind] = &[ProviderKind::OpenAi];
const OPENAI: &[ProviderKind] = &[
    ProviderKind::OpenAi,
    ProviderKind::Azure,
    ProviderKind::OpenAiResponses,
];

/// The table of profiles.
const ROWS: &[Row] = &[
    Row {
        kinds: CHAT,
        hosts: &["api.openai.com"],
        models: &[],
        set: |it| {
            it.roles = Roles::Any;
            it.think_tags = false;
            it.thoughts = Thoughts::None;
            it.cache = Cache::Key;
        },
    },
    Row {
        kinds: &[ProviderKind::Azure],
        hosts: &[],
        models: &[],
        set: |it| {
            it.roles = Roles::Any;
            it.think_tags = false;
            it.thoughts = Thoughts::None;
            it.cache = Cache::Key;
        },
    },
    Row {
        kinds: OPENAI,
        hosts: &[],
        models: &["gpt-5", "gpt-6", "o1", "o3", "o4"],
        set: |it| it.max_tokens = MaxTokens::MaxCompletionTokens,
    },
    Row {
        kinds: CHAT,
        hosts: &["api.mistral.ai"],
        models: &[],
        set: |it| {
            it.call_ids = CallIds::Nine;
            it.thoughts = Thoughts::None;
            // Mistral counts the tokens of every stream.
            it.stream_options = false;
            it.dialect = Dialect::Mistral;
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
        set: |it| it.call_ids = CallIds::Nine,
    },
    Row {
        kinds: CHAT,
        hosts: &[],
        models: &["deepseek", "kimi"],
        set: |it| it.thoughts = Thoughts::ReasoningContent,
    },
    Row {
        kinds: CHAT,
        hosts: &["api.deepseek.com", "api.moonshot.ai", "api.moonshot.cn"],
        models: &[],
        set: |it| it.thoughts = Thoughts::Required,
    },
];

impl Profile {
    /// Returns the profile of a model at a provider.
    pub fn of(kind: ProviderKind, host: &str, model: &str) -> Self {
        let mut profile = Self::of_kind(kind);
        let model = model.to_lowercase();
        let fits = |row: &&Row| {
            let is_host = |end: &&str| host == *end || host.ends_with(&format!(".{end}"));
            let is_model = |part: &&str| model.contains(part);
            row.kinds.contains(&kind)
                && (row.hosts.is_empty() || row.hosts.iter().any(is_host))
                && (row.models.is_empty() || row.models.iter().any(is_model))
        };
        for row in ROWS.iter().filter(fits) {
            (row.set)(&mut profile);
        }
        profile
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
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_kind_host_and_model() {
        let of = |host: &str, model: &str| Profile::of(ProviderKind::OpenAi, host, model);
        assert_eq!(
            of("api.openai.com", "gpt-5.1").max_tokens,
            MaxTokens::MaxCompletionTokens
        );
        assert_eq!(
            (of("api.openai.com", "x").roles, of("localhost", "x").roles),
            (Roles::Any, Roles::Alternate)
        );
        assert_eq!(
            (of("api.openai.com", "x").cache, of("localhost", "x").cache),
            (Cache::Key, Cache::Own)
        );
        let mistral = of("api.mistral.ai", "x");
        assert_eq!(
            (mistral.call_ids, mistral.dialect, mistral.stream_options),
            (CallIds::Nine, Dialect::Mistral, false)
        );
        let thoughts = |host: &str, model: &str| of(host, model).thoughts;
        assert_eq!(
            thoughts("api.deepseek.com", "deepseek-chat"),
            Thoughts::Required
        );
        assert_eq!(thoughts("api.openai.com", "x"), Thoughts::None);
        assert_eq!(
            of("notapi.mistral.ai.example", "x").call_ids,
            CallIds::Short
        );
        assert_eq!(
            of("localhost", "Vendor/Mistral-Small").call_ids,
            CallIds::Nine
        );
        assert_eq!(
            of("localhost", "deepseek-v3").thoughts,
            Thoughts::ReasoningContent
        );
        assert_eq!(
            Profile::of(ProviderKind::Anthropic, "x", "mistral").call_ids,
            CallIds::Words
        );
    }

    #[test]
    fn ids_fit_their_provider() {
        let own = "call_0123456789ab";
        for (ids, id, expected) in [
            (CallIds::Short, "call_1", "call_1"),
            (
                CallIds::Short,
                "chatcmpl-tool-0123456789abcdef0123456789abcdef",
                own,
            ),
            (CallIds::Short, "", own),
            (CallIds::Words, "a.b", own),
            (CallIds::Nine, "aB3xK9mP2", "aB3xK9mP2"),
            (CallIds::Nine, "call_1", "3456789ab"),
            (CallIds::Words, "toolu_1", "toolu_1"),
        ] {
            assert_eq!(ids.fit(id, own), expected, "{ids:?} {id}");
        }
        assert_eq!(CallIds::Nine.fit("", "c_1"), "0000000c1");
    }
}
