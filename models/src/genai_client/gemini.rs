//! Additions to genai for Gemini: `generationConfig`, the ids of calls, and frames without candidates.

use genai::Error;
use serde_json::{Map, Value, json};

use crate::{
    parameters::merge,
    parameters::{Parameters, ReasoningEffort},
    port::ModelRequest,
    provider::ProviderKind,
};

const CONFIG: &str = "generationConfig";
/// The beginning of the ids that genai makes for calls without an id. genai does not send such ids back.
const NO_ID: &str = "call#";

/// Returns the fields that genai puts over its own body. genai would replace the whole `generationConfig` by the object
/// in `extra_body` (docs/libraries.md, genai: extra fields replace whole objects), so this function makes the whole
/// object.
pub(super) fn extra_body(request: &ModelRequest) -> Map<String, Value> {
    let Parameters {
        temperature,
        top_p,
        reasoning_effort,
        stop,
        seed,
        extra_body,
    } = &request.parameters;
    let mut config = json!({});
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config[key] = value;
        }
    };
    set("temperature", temperature.map(Value::from));
    set("topP", top_p.map(Value::from));
    set("seed", seed.map(Value::from));
    set("stopSequences", (!stop.is_empty()).then(|| json!(stop)));
    set(
        "maxOutputTokens",
        request.max_output_tokens.map(Value::from),
    );
    set(
        "thinkingConfig",
        thinking(&request.model, *reasoning_effort),
    );
    let output = request.schema_field(ProviderKind::Gemini);
    set(
        "responseMimeType",
        output.map(|_| Value::from("application/json")),
    );
    set(
        "responseJsonSchema",
        output.map(|output| output.schema.clone()),
    );
    let mut body = extra_body.clone();
    if let Some(given) = body.remove(CONFIG) {
        merge(&mut config, given);
    }
    body.insert(CONFIG.to_owned(), config);
    body
}

/// Returns the configuration of the thinking; `None` for models that refuse the field because they do not think.
fn thinking(model: &str, effort: Option<ReasoningEffort>) -> Option<Value> {
    let is_of = |families: &[&str]| families.iter().any(|family| model.contains(family));
    if is_of(&["gemini-1", "gemini-2.0", "gemma"]) && effort.is_none() {
        return None;
    }
    let mut config = json!({"includeThoughts": true});
    let Some(effort) = effort else {
        return Some(config);
    };
    // Models of this family take a number of tokens; newer models take a word.
    if is_of(&["gemini-2"]) {
        config["thinkingBudget"] = match effort {
            ReasoningEffort::None => 0,
            ReasoningEffort::Minimal | ReasoningEffort::Low => 1024,
            ReasoningEffort::Medium => 8192,
            ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => 24_576,
        }
        .into();
    } else {
        config["thinkingLevel"] = match effort {
            ReasoningEffort::None | ReasoningEffort::Minimal => "MINIMAL",
            ReasoningEffort::Low => "LOW",
            ReasoningEffort::Medium => "MEDIUM",
            ReasoningEffort::High | ReasoningEffort::XHigh | ReasoningEffort::Max => "HIGH",
        }
        .into();
    }
    Some(config)
}

/// Returns the id for a call to which Gemini gave no id. genai omits the id, and Gemini matches calls and results by
/// order.
pub(super) fn no_id(tool_name: &str) -> String {
    format!("{NO_ID}{tool_name}#0")
}

/// Returns the id of a call, unless genai made the id. genai counts from the start in every frame, so calls may share
/// an id of genai's.
pub(super) fn own_id(call_id: String) -> Option<String> {
    (!call_id.starts_with(NO_ID)).then_some(call_id)
}

/// True for genai's error about a frame without candidates: the frame only has token counts, or reports a refused
/// prompt.
pub(super) fn is_without_candidates(error: &Error) -> bool {
    matches!(error, Error::ChatResponse { body, .. }
        if body.get("error").is_none() && body.get("usageMetadata") == Some(&Value::Null))
}
