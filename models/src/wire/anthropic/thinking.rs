//! The fields of a request that set a model's thinking.

use serde_json::{Value, json};

use super::models::{Facts, Thinking};
use crate::parameters::ReasoningEffort;

/// The fewest tokens of a budget.
const MIN_BUDGET: u32 = 1024;

/// The fields for one effort.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Fields {
    /// The field `thinking`.
    pub(super) thinking: Option<Value>,
    /// The field `output_config.effort`.
    pub(super) effort: Option<&'static str>,
}

/// Returns the fields for an effort. `max_tokens` is the limit of the reply, which includes the thinking.
pub(super) fn fields(effort: ReasoningEffort, facts: &Facts, max_tokens: u32) -> Fields {
    if effort == ReasoningEffort::None {
        return Fields {
            thinking: off(facts),
            effort: None,
        };
    }
    let effort_word = Some(word(effort, facts));
    match facts.thinking {
        Thinking::Budget => Fields {
            thinking: enabled(wanted(effort), max_tokens),
            effort: None,
        },
        Thinking::Effort => Fields {
            thinking: None,
            effort: effort_word,
        },
        Thinking::Adaptive => Fields {
            // Newer models send thoughts without their text by default.
            thinking: Some(json!({"type": "adaptive", "display": "summarized"})),
            effort: effort_word,
        },
    }
}

/// Returns the fields for a budget of tokens.
pub(super) fn with_budget(tokens: u32, max_tokens: u32) -> Fields {
    Fields {
        thinking: enabled(tokens.max(MIN_BUDGET), max_tokens),
        effort: None,
    }
}

/// Returns the field `thinking` that turns the thinking off; `None` for a model that does not think unless a request asks
/// for thoughts.
pub(super) fn off(facts: &Facts) -> Option<Value> {
    facts.thinks_by_default.then(|| json!({"type": "disabled"}))
}

/// Returns the model's word for an effort, or for the nearest effort that the model has.
fn word(effort: ReasoningEffort, facts: &Facts) -> &'static str {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        top if facts.top_efforts.contains(&top) => top.as_str(),
        ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => "high",
    }
}

/// Returns the budget of an effort.
fn wanted(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => MIN_BUDGET,
        ReasoningEffort::Medium => 8_000,
        ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => 24_000,
    }
}

fn enabled(wanted: u32, max_tokens: u32) -> Option<Value> {
    let tokens = budget(wanted, max_tokens)?;
    Some(json!({"type": "enabled", "budget_tokens": tokens}))
}

/// Returns a budget that is less than the limit of the reply; `None` when the limit leaves no room for a budget.
fn budget(wanted: u32, max_tokens: u32) -> Option<u32> {
    let fitting = if wanted < max_tokens {
        wanted
    } else {
        // The other half is for the answer.
        (max_tokens / 2).max(MIN_BUDGET)
    };
    (fitting < max_tokens).then_some(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_told_how_much_to_think_in_its_own_way() {
        let adaptive = json!({"type": "adaptive", "display": "summarized"});
        let enabled = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
        let off = json!({"type": "disabled"});
        for (model, effort, thinking, word) in [
            ("claude-opus-5", "none", Some(off.clone()), None),
            ("claude-opus-4-7", "none", None, None),
            ("claude-mythos-1", "none", None, None),
            ("claude-sonnet-4-5", "none", None, None),
            (
                "claude-sonnet-5",
                "xhigh",
                Some(adaptive.clone()),
                Some("xhigh"),
            ),
            (
                "claude-opus-4-6",
                "max",
                Some(adaptive.clone()),
                Some("max"),
            ),
            (
                "claude-opus-4-6",
                "xhigh",
                Some(adaptive.clone()),
                Some("high"),
            ),
            ("claude-opus-4-5", "max", None, Some("high")),
            ("claude-opus-4-5", "minimal", None, Some("low")),
            ("claude-sonnet-4-5", "low", Some(enabled(1024)), None),
            ("claude-sonnet-4-5", "medium", Some(enabled(8_000)), None),
            ("claude-haiku-4-5", "max", Some(enabled(24_000)), None),
            ("glm-4.6", "high", Some(enabled(24_000)), None),
        ] {
            let effort = ReasoningEffort::read(effort).unwrap();
            let expected = Fields {
                thinking,
                effort: word,
            };
            let facts = Facts::about(model);
            assert_eq!(fields(effort, facts, facts.max_tokens), expected, "{model}");
        }
    }

    #[test]
    fn a_budget_is_less_than_the_limit_of_the_reply() {
        for (limit, expected) in [
            (99, None),
            (1024, None),
            (1025, Some(1024)),
            (3_000, Some(1_500)),
            (8_001, Some(8_000)),
        ] {
            let budget = budget(wanted(ReasoningEffort::Medium), limit);
            assert_eq!(budget, expected, "{limit}");
        }
    }
}
