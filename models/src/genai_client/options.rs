//! The parameters of a request, in genai's form.

use std::sync::Arc;

use genai::chat::{ChatOptions, JsonSpec, ReasoningEffort as WireEffort, ToolChoice};
use serde_json::Value;

use super::{frames::Frames, gemini};
use crate::{parameters::ReasoningEffort, port::ModelRequest, provider::ProviderKind};

/// Returns the options of a call. `frames` reads the frames of its stream.
pub(super) fn of(
    request: &ModelRequest,
    kind: ProviderKind,
    frames: Option<Arc<Frames>>,
) -> ChatOptions {
    let mut options = ChatOptions::default()
        .with_capture_content(true)
        .with_capture_reasoning_content(true)
        .with_capture_tool_calls(true)
        .with_capture_usage(true);
    if let Some(frames) = frames {
        options = options.with_raw_frame_sink_arc(frames);
    }
    // OpenAI refuses a tool choice in a request without tools.
    if request.wants_text && !request.tools.is_empty() {
        options = options.with_tool_choice(ToolChoice::None);
    }
    if kind == ProviderKind::Gemini {
        return options.with_extra_body(Value::Object(gemini::extra_body(request)));
    }
    if let Some(output) = request.schema_field(kind) {
        let spec = JsonSpec::new(output.name.as_str(), output.schema.clone());
        options = options.with_response_format(spec);
    }
    let parameters = &request.parameters;
    if let Some(limit) = request.max_output_tokens {
        options = options.with_max_tokens(limit);
    }
    if let Some(temperature) = parameters.temperature {
        options = options.with_temperature(temperature);
    }
    if let Some(top_p) = parameters.top_p {
        options = options.with_top_p(top_p);
    }
    if let Some(effort) = parameters.reasoning_effort {
        options = options.with_reasoning_effort(wire_effort(effort));
    }
    if let Some(seed) = parameters.seed {
        options = options.with_seed(u64::from(seed));
    }
    if !parameters.stop.is_empty() {
        options = options.with_stop_sequences(parameters.stop.clone());
    }
    // The extra body is merged last, so that the provider gets the configured name of the model unchanged.
    let mut body = parameters.extra_body.clone();
    body.insert("model".to_owned(), request.model.clone().into());
    options.with_extra_body(Value::Object(body))
}

fn wire_effort(effort: ReasoningEffort) -> WireEffort {
    match effort {
        ReasoningEffort::None => WireEffort::Zero,
        ReasoningEffort::Minimal => WireEffort::Minimal,
        ReasoningEffort::Low => WireEffort::Low,
        ReasoningEffort::Medium => WireEffort::Medium,
        ReasoningEffort::High => WireEffort::High,
        ReasoningEffort::XHigh => WireEffort::XHigh,
        ReasoningEffort::Max => WireEffort::Max,
    }
}

/// Returns the part of a model's name that genai may see. From full names genai takes unwanted settings: a
/// `namespace::`, an ending like `-high`, and no prompt caching for OpenAI's newer models.
pub(super) fn family(kind: ProviderKind, model: &str) -> &str {
    let mut name = model.rsplit("::").next().unwrap_or(model);
    while let (Some(_), shorter) = WireEffort::from_model_name(name) {
        name = shorter;
    }
    match kind {
        // Every model of these families needs the limit of tokens under another field name.
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Azure => {
            let families = ["gpt-5", "gpt-6", "o1", "o3", "o4"];
            if families.iter().any(|family| name.starts_with(family)) {
                "gpt-5"
            } else {
                "model"
            }
        }
        // Anthropic requires a limit of tokens, and every family has another limit.
        ProviderKind::Anthropic | ProviderKind::Gemini if name.is_empty() => "model",
        ProviderKind::Anthropic | ProviderKind::Gemini => name,
    }
}
