//! Parameters of a call: the agent's settings for the model's writing.

use everturn_proto::{Json, turn::AgentDefinition};
use serde_json::{Map, Value};

use crate::provider::ProviderKind;

/// The settings for the model's reply. The provider decides about absent settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    /// The randomness of the choice of words.
    pub temperature: Option<f64>,
    /// The share of likely words from which the model chooses.
    pub top_p: Option<f64>,
    /// The amount of a reasoning model's thinking.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most tokens of thinking, for providers that count the thinking.
    pub thinking_budget: Option<u32>,
    /// The provider's word for the priority and the price of the call.
    pub service_tier: Option<String>,
    /// Whether the model may make several tool calls in a reply.
    pub parallel_tool_calls: Option<bool>,
    /// The reply ends before the first of these texts.
    pub stop: Vec<String>,
    /// The provider tries to give equal replies for an equal seed and request.
    pub seed: Option<u32>,
    /// Further fields of the request's body.
    pub extra_body: Map<String, Value>,
}

impl Parameters {
    /// Forbidden keys in `extra_body`, because the turn's content is written there.
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

    /// Further forbidden keys in `extra_body` for providers with OpenAI's Responses API, because their values decide
    /// how the response is made and stored.
    const RESERVED_OF_RESPONSES: [&str; 7] = [
        "input",
        "instructions",
        "background",
        "store",
        "include",
        "previous_response_id",
        "conversation",
    ];

    /// Returns every forbidden key of `extra_body` for providers of this kind.
    pub fn reserved(kind: ProviderKind) -> impl Iterator<Item = &'static str> {
        let of_kind: &[&str] = match kind {
            ProviderKind::OpenAiResponses => &Self::RESERVED_OF_RESPONSES,
            _ => &[],
        };
        Self::RESERVED.iter().chain(of_kind).copied()
    }

    /// Returns the parameters of an agent. A word unknown to this version is ignored.
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
            thinking_budget: agent.thinking_budget,
            service_tier: agent.service_tier.clone(),
            parallel_tool_calls: agent.parallel_tool_calls,
            stop: agent.stop.clone(),
            seed: agent.seed,
            extra_body,
        }
    }
}

/// The amount of a reasoning model's thinking before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningEffort {
    /// No thinking.
    None,
    /// As little thinking as possible.
    Minimal,
    /// A little thinking.
    Low,
    /// As much thinking as most models do by default.
    Medium,
    /// Much thinking.
    High,
    /// Very much thinking, if the model can.
    XHigh,
    /// As much thinking as possible.
    Max,
}

impl ReasoningEffort {
    /// Every effort, from none to the most.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::XHigh,
        Self::Max,
    ];

    /// Returns the effort's word in the configuration and in definitions.
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

    /// Returns the effort of a word.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == word)
    }

    /// True when providers of this kind have exactly this effort. A provider with only a near effort gives false.
    pub fn is_known_to(self, kind: ProviderKind) -> bool {
        match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => true,
            ProviderKind::Anthropic => self != Self::Minimal,
            ProviderKind::Gemini => !matches!(self, Self::None | Self::XHigh | Self::Max),
        }
    }
}

/// Merges the fields of `given` into `into`, object by object; `given` wins.
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
