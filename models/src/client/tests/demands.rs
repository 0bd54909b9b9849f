//! The demand on tool calls, the budget of thinking, and the format of JSON, in the body of each kind of request.

use everturn_proto::turn::{AgentDefinition, AgentOutput};
use serde_json::{Value, json};

use super::{request, user};
use crate::{
    output::OutputFormat,
    port::ModelRequest,
    profile::{Profile, ProfileSettings},
    provider::ProviderKind::{self, Anthropic, Gemini, OpenAi, OpenAiResponses},
    responses,
    tool_choice::ToolChoice,
    wire,
};

fn body(kind: ProviderKind, request: &ModelRequest) -> Value {
    let profile = Profile::of(kind, "x", &request.model, ProfileSettings::default());
    if kind == OpenAiResponses {
        let mode = responses::Mode {
            is_background: false,
            has_thoughts: false,
        };
        return responses::body(request, mode, &profile);
    }
    serde_json::to_value(wire::body(request, &profile)).unwrap()
}

fn of_model(model: &str) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        ..request(vec![user("Hello")])
    }
}

#[test]
fn each_wire_has_its_words_for_a_demand() {
    let named = |tool: Value| json!({"type": "function", "function": tool});
    let function = json!({"name": "weather"});
    for (choice, chat, responses, anthropic, gemini) in [
        (
            "required",
            json!("required"),
            json!("required"),
            json!({"type": "any"}),
            json!({"mode": "ANY"}),
        ),
        (
            "none",
            json!("none"),
            json!("none"),
            json!({"type": "none"}),
            json!({"mode": "NONE"}),
        ),
        (
            "auto",
            json!("auto"),
            json!("auto"),
            json!({"type": "auto"}),
            json!({"mode": "AUTO"}),
        ),
        (
            "weather",
            named(function.clone()),
            json!({"type": "function", "name": "weather"}),
            json!({"type": "tool", "name": "weather"}),
            json!({"mode": "ANY", "allowedFunctionNames": ["weather"]}),
        ),
        (
            "unknown",
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ),
    ] {
        let mut request = of_model("model-1");
        request.tool_choice = Some(ToolChoice::read(choice));
        assert_eq!(body(OpenAi, &request)["tool_choice"], chat, "{choice}");
        let of_responses = body(OpenAiResponses, &request);
        assert_eq!(of_responses["tool_choice"], responses, "{choice}");
        let of_anthropic = body(Anthropic, &request);
        assert_eq!(of_anthropic["tool_choice"], anthropic, "{choice}");
        let config = &body(Gemini, &request)["toolConfig"]["functionCallingConfig"];
        assert_eq!(*config, gemini, "{choice}");
    }
}

#[test]
fn a_demand_needs_tools_and_gives_way_to_a_summary() {
    let mut request = of_model("model-1");
    request.tool_choice = Some(ToolChoice::Required);
    request.parameters.parallel_tool_calls = Some(false);
    request.wants_text = true;
    for kind in [OpenAi, OpenAiResponses] {
        assert_eq!(body(kind, &request)["tool_choice"], "none", "{kind:?}");
    }
    let choice = &body(Anthropic, &request)["tool_choice"];
    assert_eq!(*choice, json!({"type": "none"}));
    request.tools.clear();
    for kind in ProviderKind::ALL {
        let body = body(kind, &request);
        for field in ["tool_choice", "toolConfig", "parallel_tool_calls"] {
            assert_eq!(body.get(field), None, "{kind:?}");
        }
    }
}

#[test]
fn calls_one_by_one() {
    let mut request = of_model("model-1");
    request.parameters.parallel_tool_calls = Some(false);
    for kind in [OpenAi, OpenAiResponses] {
        assert_eq!(body(kind, &request)["parallel_tool_calls"], false);
    }
    let one_by_one = |kind: &str| json!({"type": kind, "disable_parallel_tool_use": true});
    assert_eq!(body(Anthropic, &request)["tool_choice"], one_by_one("auto"));
    request.tool_choice = Some(ToolChoice::Required);
    assert_eq!(body(Anthropic, &request)["tool_choice"], one_by_one("any"));
}

#[test]
fn a_budget_of_thinking_is_sent_as_it_is() {
    let thinking = |model: &str, budget: u32, limit: Option<u32>| {
        let mut request = of_model(model);
        request.parameters.thinking_budget = Some(budget);
        request.max_output_tokens = limit;
        body(Anthropic, &request)["thinking"].clone()
    };
    let enabled = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(thinking("claude-sonnet-4-5", 5000, None), enabled(5000));
    let small = thinking("claude-sonnet-4-5", 5000, Some(3000));
    assert_eq!(small, enabled(1500));
    for (budget, expected) in [
        (0, json!({"thinkingBudget": 0})),
        (77, json!({"includeThoughts": true, "thinkingBudget": 77})),
    ] {
        let mut request = of_model("gemini-3-pro");
        request.parameters.thinking_budget = Some(budget);
        let config = &body(Gemini, &request)["generationConfig"];
        assert_eq!(config["thinkingConfig"], expected);
    }
}

#[test]
fn anthropic_does_not_think_before_a_demanded_call() {
    let mut request = of_model("claude-sonnet-4-5");
    request.parameters.thinking_budget = Some(5000);
    request.tool_choice = Some(ToolChoice::Required);
    assert_eq!(body(Anthropic, &request).get("thinking"), None);
    request.model = "claude-opus-5".to_owned();
    let thinking = &body(Anthropic, &request)["thinking"];
    assert_eq!(*thinking, json!({"type": "disabled"}));
}

#[test]
fn json_without_a_schema_is_asked_for_in_the_form_of_each_wire() {
    let agent = AgentDefinition {
        output: Some(AgentOutput::default()),
        ..AgentDefinition::default()
    };
    let mut request = of_model("model-1");
    request.output = OutputFormat::of(&agent);
    let has_words = |text: &Value| text.to_string().contains("must be one JSON object, and");
    let chat = body(OpenAi, &request);
    assert_eq!(chat["response_format"], json!({"type": "json_object"}));
    assert!(has_words(&chat["messages"][0]), "{chat}");
    let responses = body(OpenAiResponses, &request);
    assert_eq!(responses["text"]["format"], json!({"type": "json_object"}));
    assert_eq!(responses["input"][0]["role"], "developer");
    assert!(has_words(&responses["input"][0]), "{responses}");
    assert_eq!(responses["instructions"], "Be brief.");
    let anthropic = body(Anthropic, &request);
    assert_eq!(anthropic.get("output_config"), None);
    assert!(has_words(&anthropic["system"]), "{anthropic}");
    let with_tools = body(Gemini, &request);
    assert_eq!(with_tools["generationConfig"].get("responseMimeType"), None);
    request.tools.clear();
    let without_tools = body(Gemini, &request);
    let config = &without_tools["generationConfig"];
    assert_eq!(config["responseMimeType"], "application/json");
    assert_eq!(config.get("responseJsonSchema"), None);
}
