//! The settings of a Gemini model's thinking. Each family of models takes other fields, and refuses the fields of the
//! other families.

use serde_json::{Value, json};

use crate::parameters::ReasoningEffort;

/// Families that refuse a request for thoughts, unless an effort turns the thinking on.
const THOUGHTLESS: [&str; 5] = [
    "gemini-1",
    "gemini-2.0",
    "gemini-2.5-flash-lite",
    "gemini-2.5-flash-image",
    "gemma",
];
/// The fewest tokens of thinking of a model that always thinks.
const LEAST_OF_PRO: u32 = 128;

/// Returns the settings of the thinking; `None` for models that refuse the field because they do not think.
pub(super) fn settings(model: &str, effort: Option<ReasoningEffort>) -> Option<Value> {
    let model = model.to_lowercase();
    let is_of = |families: &[&str]| families.iter().any(|family| model.contains(family));
    let Some(effort) = effort else {
        return (!is_of(&THOUGHTLESS)).then(|| json!({"includeThoughts": true}));
    };
    let is_pro = is_of(&["-pro"]);
    // Models of this family take a number of tokens; newer models take a word.
    if is_of(&["gemini-2"]) {
        return Some(with_budget(budget(effort, is_pro)));
    }
    Some(json!({"includeThoughts": true, "thinkingLevel": level(effort, is_pro)}))
}

/// Returns the settings for a number of tokens.
pub(super) fn with_budget(tokens: u32) -> Value {
    match tokens {
        // A model that does not think refuses a request for thoughts.
        0 => json!({"thinkingBudget": 0}),
        tokens => json!({"includeThoughts": true, "thinkingBudget": tokens}),
    }
}

fn budget(effort: ReasoningEffort, is_pro: bool) -> u32 {
    match effort {
        ReasoningEffort::None if is_pro => LEAST_OF_PRO,
        ReasoningEffort::None => 0,
        ReasoningEffort::Minimal | ReasoningEffort::Low => 1024,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => 24_576,
    }
}

fn level(effort: ReasoningEffort, is_pro: bool) -> &'static str {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal if is_pro => "LOW",
        ReasoningEffort::None | ReasoningEffort::Minimal => "MINIMAL",
        ReasoningEffort::Low => "LOW",
        ReasoningEffort::Medium => "MEDIUM",
        ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => "HIGH",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_gets_the_fields_that_it_takes() {
        use ReasoningEffort::{High, Low, Minimal, None as Off};
        let thoughts = json!({"includeThoughts": true});
        let tokens = |tokens: u32| json!({"includeThoughts": true, "thinkingBudget": tokens});
        let level = |word: &str| json!({"includeThoughts": true, "thinkingLevel": word});
        for (model, effort, expected) in [
            ("gemini-2.5-pro", None, thoughts.clone()),
            ("gemini-flash-latest", None, thoughts),
            ("gemini-2.0-flash", None, Value::Null),
            ("gemini-2.5-flash-lite", None, Value::Null),
            ("gemma-3-27b-it", None, Value::Null),
            ("gemini-2.5-flash-lite", Some(Low), tokens(1024)),
            ("gemini-2.5-flash", Some(Off), json!({"thinkingBudget": 0})),
            ("gemini-2.5-pro", Some(Off), tokens(128)),
            ("gemini-2.5-pro", Some(High), tokens(24_576)),
            ("gemini-3.1-pro-preview", Some(Minimal), level("LOW")),
            ("gemini-3-flash", Some(Minimal), level("MINIMAL")),
            ("gemini-3-flash", Some(High), level("HIGH")),
        ] {
            let given = settings(model, effort).unwrap_or_default();
            assert_eq!(given, expected, "{model} {effort:?}");
        }
    }
}
