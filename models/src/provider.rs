//! Providers: the addresses for requests, and the form of the requests.

use std::collections::BTreeMap;

use crate::{caller::CallerFields, gate::CallLimits};

/// The address of a provider, and the form of its requests.
#[derive(Clone)]
pub struct Provider {
    /// The form of the provider's requests and replies.
    pub kind: ProviderKind,
    /// Base URL; `None`: the kind's default address.
    pub base_url: Option<String>,
    /// The key for the provider, if it needs a key.
    pub api_key: Option<String>,
    /// Further headers of each request, by name. The values are secrets like the key.
    pub headers: BTreeMap<String, String>,
    /// The facts about callers in each request.
    pub caller: CallerFields,
    /// The limits of one process's calls to the provider.
    pub limits: CallLimits,
    /// True when the provider makes responses in the background, if its kind can ([`ProviderKind::has_background`]).
    pub background: bool,
}

impl Provider {
    /// Makes a provider of this kind at the kind's default address, without a key.
    pub fn new(kind: ProviderKind) -> Self {
        Self {
            kind,
            base_url: None,
            api_key: None,
            headers: BTreeMap::new(),
            caller: CallerFields::default(),
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

/// The known forms of requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI's chat completions, and every server compatible with it.
    OpenAi,
    /// OpenAI's Responses API.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Azure OpenAI: OpenAI's chat completions, with the key in Azure's own header.
    Azure,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
}

impl ProviderKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Azure,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// Returns the kind's word in the configuration.
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

    /// True when requests of this kind can have stop sequences, which end the reply.
    pub fn has_stop(self) -> bool {
        !matches!(self, Self::OpenAiResponses)
    }

    /// True when requests of this kind can have a seed.
    pub fn has_seed(self) -> bool {
        !matches!(self, Self::OpenAiResponses | Self::Anthropic)
    }

    /// Returns the default address of the kind. Azure has no default, because every Azure resource has its own address.
    pub fn own_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiResponses => Some("https://api.openai.com/v1/"),
            Self::Azure => None,
            Self::Anthropic => Some("https://api.anthropic.com/v1/"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta/"),
        }
    }
}

/// Providers by the name in agent definitions.
pub type Providers = BTreeMap<String, Provider>;
