//! The parameters of an agent's LLM calls: `temperature`, `top_p`, `reasoning_effort`, `thinking_budget`, `service_tier`,
//! `parallel_tool_calls`, `stop`, `seed` and `extra_body`.
//!
//! A parameter that the provider's kind does not support is refused. Otherwise, calls would silently lack the
//! parameter.

use everturn_models::{Parameters, ProviderKind, ReasoningEffort};
use everturn_proto::{Json, turn::AgentDefinition};
use toml::Spanned;

use super::AgentTable;
use crate::{
    checker::{Checker, is_json},
    forms::within,
};

/// OpenAI accepts 4 stop sequences, Gemini 5, and some servers more. A provider refuses requests above its own limit.
const MAX_STOPS: usize = 16;
const MAX_STOP_CHARS: usize = 200;
/// Anthropic's least budget of thinking.
const LEAST_BUDGET: u32 = 1024;
const MAX_TIER_CHARS: usize = 64;
/// The limit exists because the fields are part of each request and of the agent's definition.
const MAX_EXTRA_BYTES: usize = 16 * 1024;

impl AgentTable {
    /// Returns the definition with the parameters. Refuses parameters that the provider's kind does not support.
    pub(super) fn parameters(
        &self,
        check: &mut Checker<'_>,
        kind: ProviderKind,
        definition: AgentDefinition,
    ) -> AgentDefinition {
        let most = match kind {
            ProviderKind::Anthropic => 1.0,
            ProviderKind::OpenAi
            | ProviderKind::OpenAiResponses
            | ProviderKind::Azure
            | ProviderKind::Gemini => 2.0,
        };
        let mut share = |key, written: &Option<Spanned<f64>>, most| {
            let written = written.as_ref()?;
            check.right(written, key, within(*written.get_ref(), 0.0..=most))
        };
        let temperature = share("temperature", &self.temperature, most);
        let top_p = share("top_p", &self.top_p, 1.0);
        AgentDefinition {
            temperature,
            top_p,
            reasoning_effort: self.effort(check, kind),
            thinking_budget: self.budget_of_thinking(check, kind),
            service_tier: self.service_tier(check, kind),
            parallel_tool_calls: self.parallel_tool_calls(check, kind),
            stop: self.stops(check, kind),
            seed: self.seed(check, kind),
            extra_body: self.extra_body(check, kind),
            ..definition
        }
    }

    fn effort(&self, check: &mut Checker<'_>, kind: ProviderKind) -> Option<String> {
        let written = self.reasoning_effort.as_ref()?;
        let known: Vec<_> = ReasoningEffort::ALL
            .into_iter()
            .filter(|effort| effort.is_known_to(kind))
            .map(ReasoningEffort::as_str)
            .collect();
        let word = written.get_ref();
        if !known.contains(&word.as_str()) {
            check.wrong(
                written,
                format!(
                    "`reasoning_effort` of a provider of kind `{}` is one of {}, not \"{word}\"",
                    kind.as_str(),
                    known.join(", ")
                ),
            );
        }
        Some(word.clone())
    }

    fn budget_of_thinking(&self, check: &mut Checker<'_>, kind: ProviderKind) -> Option<u32> {
        let written = self.thinking_budget.as_ref()?;
        let budget = check.value(written)?;
        if !kind.has_thinking_budget() {
            has_none(check, &written.at, "thinking_budget", kind);
        }
        if self.reasoning_effort.is_some() {
            check.wrong(
                &written.at,
                "`thinking_budget` and `reasoning_effort` both say how much the model thinks; remove either key",
            );
        }
        if kind == ProviderKind::Anthropic {
            if budget < LEAST_BUDGET {
                check.wrong(
                    &written.at,
                    format!("`thinking_budget` of a provider of kind `anthropic` is at least {LEAST_BUDGET}"),
                );
            }
            let limit = self.max_output_tokens.filter(|tokens| *tokens > 0);
            if limit.is_some_and(|limit| limit <= budget) {
                check.wrong(
                    &written.at,
                    "`thinking_budget` is a part of `max_output_tokens`, and must be less",
                );
            }
        }
        Some(budget)
    }

    fn service_tier(&self, check: &mut Checker<'_>, kind: ProviderKind) -> Option<String> {
        let written = self.service_tier.as_ref()?;
        let tier = written.get_ref();
        let Some(known) = kind.service_tiers() else {
            has_none(check, written, "service_tier", kind);
            return Some(tier.clone());
        };
        if !known.is_empty() && !known.contains(&tier.as_str()) {
            check.wrong(
                written,
                format!(
                    "`service_tier` of a provider of kind `{}` is one of {}, not \"{tier}\"",
                    kind.as_str(),
                    known.join(", ")
                ),
            );
        }
        if !(1..=MAX_TIER_CHARS).contains(&tier.chars().count()) {
            check.wrong(
                written,
                format!("`service_tier` has 1 to {MAX_TIER_CHARS} characters"),
            );
        }
        Some(tier.clone())
    }

    fn parallel_tool_calls(&self, check: &mut Checker<'_>, kind: ProviderKind) -> Option<bool> {
        let written = self.parallel_tool_calls.as_ref()?;
        if !kind.has_parallel_tool_calls() {
            has_none(check, written, "parallel_tool_calls", kind);
        }
        Some(*written.get_ref())
    }

    fn stops(&self, check: &mut Checker<'_>, kind: ProviderKind) -> Vec<String> {
        if let Some(first) = self.stop.first().filter(|_| !kind.has_stop()) {
            has_none(check, first, "stop", kind);
        }
        if let Some(first) = self.stop.get(MAX_STOPS) {
            check.wrong(first, format!("`stop` has at most {MAX_STOPS} texts"));
        }
        for text in &self.stop {
            let chars = text.get_ref().chars().count();
            if !(1..=MAX_STOP_CHARS).contains(&chars) {
                check.wrong(
                    text,
                    format!("a text of `stop` has 1 to {MAX_STOP_CHARS} characters"),
                );
            }
        }
        self.stop
            .iter()
            .map(|text| text.get_ref().clone())
            .collect()
    }

    fn seed(&self, check: &mut Checker<'_>, kind: ProviderKind) -> Option<u32> {
        let written = self.seed.as_ref()?;
        if !kind.has_seed() {
            has_none(check, &written.at, "seed", kind);
        }
        check.value(written)
    }

    fn extra_body(&self, check: &mut Checker<'_>, kind: ProviderKind) -> Option<Json> {
        let written = self.extra_body.as_ref()?;
        let fields = written.get_ref();
        for reserved in Parameters::reserved(kind) {
            if fields.contains_key(reserved) {
                check.wrong(
                    written,
                    format!(
                        "`extra_body` must not have `{reserved}`: Everturn writes the turn there"
                    ),
                );
            }
        }
        if !fields.values().all(is_json) {
            check.wrong(
                written,
                "`extra_body` holds a date or a number that JSON does not have; write the value as a string",
            );
        }
        let body = Json::of(fields);
        if body.as_str().len() > MAX_EXTRA_BYTES {
            check.wrong(
                written,
                format!("`extra_body` is longer than {MAX_EXTRA_BYTES} bytes"),
            );
        }
        Some(body)
    }
}

fn has_none<T>(check: &mut Checker<'_>, written: &Spanned<T>, key: &str, kind: ProviderKind) {
    let kind = kind.as_str();
    check.wrong(
        written,
        format!("a provider of kind `{kind}` has no `{key}`; remove the key"),
    );
}
