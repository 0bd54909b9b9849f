//! Providers: where requests go, and in which form.

use std::collections::BTreeMap;

use super::CallLimits;

/// The address of a provider, and how requests to it are written.
#[derive(Clone)]
pub struct Provider {
    /// The form of its requests and replies.
    pub kind: ProviderKind,
    /// Base URL; `None` for the provider's own.
    pub base_url: Option<String>,
    /// Key sent to it, when it wants one.
    pub api_key: Option<String>,
    /// Further headers of each request, by name. Their values are secrets, as the key is.
    pub headers: BTreeMap<String, String>,
    /// How many calls of it a process makes.
    pub limits: CallLimits,
    /// Whether it makes responses in the background, where its kind can ([`ProviderKind::has_background`]).
    pub background: bool,
}

impl Provider {
    /// A provider of this kind at its own address, without a key.
    pub fn new(kind: ProviderKind) -> Self {
        Self {
            kind,
            base_url: None,
            api_key: None,
            headers: BTreeMap::new(),
            limits: CallLimits::default(),
            background: kind.has_background(),
        }
    }
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key and the headers stay out of logs.
        f.debug_struct("Provider")
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .field("limits", &self.limits)
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

/// The forms of requests and replies that the adapter knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI's chat completions, and every server compatible with it.
    OpenAi,
    /// OpenAI's Responses API.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Azure OpenAI: OpenAI's chat completions, with the key in a header of its own.
    Azure,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
}

impl ProviderKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Azure,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The word for it in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai_responses",
            Self::Azure => "azure",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// True when providers of this kind can make responses in the background.
    pub fn has_background(self) -> bool {
        matches!(self, Self::OpenAiResponses)
    }

    /// True when requests of this kind can have texts that end the reply.
    pub fn has_stop(self) -> bool {
        !matches!(self, Self::OpenAiResponses)
    }

    /// True when requests of this kind can have a seed.
    pub fn has_seed(self) -> bool {
        !matches!(self, Self::OpenAiResponses | Self::Anthropic)
    }

    /// The address that is used when the configuration has none. Each Azure resource has an address of its own.
    pub fn own_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiResponses => Some("https://api.openai.com/v1/"),
            Self::Azure => None,
            Self::Anthropic => Some("https://api.anthropic.com/v1/"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta/"),
        }
    }
}

/// Providers by the name agents use.
pub type Providers = BTreeMap<String, Provider>;
