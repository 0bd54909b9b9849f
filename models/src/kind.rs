//! The kinds of providers: the forms of requests and replies that Everturn knows.

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

    /// True when requests of this kind can say whether the model may make several tool calls in a reply.
    pub fn has_parallel_tool_calls(self) -> bool {
        !matches!(self, Self::Gemini)
    }

    /// True when requests of this kind can limit the tokens of the thinking.
    pub fn has_thinking_budget(self) -> bool {
        matches!(self, Self::Anthropic | Self::Gemini)
    }

    /// Returns the known words of `service_tier`; `Some` and empty: the kind has further words; `None`: the kind has no
    /// such field.
    pub fn service_tiers(self) -> Option<&'static [&'static str]> {
        match self {
            Self::OpenAi | Self::OpenAiResponses | Self::Azure => Some(&[]),
            Self::Anthropic => Some(&["auto", "standard_only"]),
            Self::Gemini => None,
        }
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
