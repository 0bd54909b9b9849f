//! Parameters of a call: how the model is to write, as the agent's definition says.

use everturn_proto::{Json, turn::AgentDefinition};
use serde_json::{Map, Value};

use super::ProviderKind;

/// How a model is to write its reply. What is absent, the provider decides.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    /// How random the choice of words is.
    pub temperature: Option<f64>,
    /// The share of the likeliest words that are chosen from.
    pub top_p: Option<f64>,
    /// How much a reasoning model thinks.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The reply ends before the first of these texts.
    pub stop: Vec<String>,
    /// The provider tries to give the same reply for the same seed and the same request.
    pub seed: Option<u32>,
    /// Further fields of the request's body.
    pub extra_body: Map<String, Value>,
}

impl Parameters {
    /// Keys that `extra_body` must not have, because the turn's content is written there.
    const RESERVED: [&str; 8] = [
        "model",
        "messages",
        "stream",
        "tools",
        "system",
        "contents",
        "systemInstruction",
        "system_instruction",
    ];

    /// Keys that `extra_body` must not have either for providers with OpenAI's Responses API: what is written there decides
    /// what becomes of the response.
    const RESERVED_OF_RESPONSES: [&str; 7] = [
        "input",
        "instructions",
        "background",
        "store",
        "include",
        "previous_response_id",
        "conversation",
    ];

    /// All keys that `extra_body` must not have for providers of this kind.
    pub fn reserved(kind: ProviderKind) -> impl Iterator<Item = &'static str> {
        let of_kind: &[&str] = match kind {
            ProviderKind::OpenAiResponses => &Self::RESERVED_OF_RESPONSES,
            _ => &[],
        };
        Self::RESERVED.iter().chain(of_kind).copied()
    }

    /// The parameters of an agent. A word that this version does not know says nothing.
    pub fn of(agent: &AgentDefinition) -> Self {
        let effort = agent.reasoning_effort.as_deref();
        let extra = agent.extra_body.as_ref().map(Json::to_value);
        let mut extra_body = match extra {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        extra_body.retain(|key, _| !Self::RESERVED.contains(&key.as_str()));
        Self {
            temperature: agent.temperature,
            top_p: agent.top_p,
            reasoning_effort: effort.and_then(ReasoningEffort::read),
            stop: agent.stop.clone(),
            seed: agent.seed,
            extra_body,
        }
    }
}

/// How much a reasoning model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningEffort {
    /// It does not think.
    None,
    /// It thinks as little as it can.
    Minimal,
    /// It thinks a little.
    Low,
    /// It thinks as much as most models do by default.
    Medium,
    /// It thinks much.
    High,
    /// It thinks very much, where it can.
    XHigh,
    /// It thinks as much as it can.
    Max,
}

impl ReasoningEffort {
    /// All of them, from none to the most.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::XHigh,
        Self::Max,
    ];

    /// The word for it in the configuration and in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The effort that this word means.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == word)
    }

    /// True when providers of this kind have this effort, and not only one that is near it.
    pub fn is_known_to(self, kind: ProviderKind) -> bool {
        match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => true,
            ProviderKind::Anthropic => self != Self::Minimal,
            ProviderKind::Gemini => !matches!(self, Self::None | Self::XHigh | Self::Max),
        }
    }
}

/// Puts the fields of `given` over those of `into`, object by object.
pub(super) fn merge(into: &mut Value, given: Value) {
    match (into, given) {
        (Value::Object(into), Value::Object(given)) => {
            for (key, value) in given {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, given) => *into = given,
    }
}
