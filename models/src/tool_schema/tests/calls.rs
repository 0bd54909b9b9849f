//! The tools of a request, its history, and the calls of its reply.

use everturn_proto::{Json, words::MessageRole};
use everturn_store::ContextMessage;
use everturn_stream::Part;
use serde_json::json;

use crate::{
    client::tests::{call, request, user},
    kind::ProviderKind,
    port::{ModelReply, ModelToolCall, OfferedTool, ReplyListener},
    profile::{Profile, ProfileSettings},
    tool_choice::ToolChoice,
    tool_schema::Offer,
};

fn tool(name: &str, parameters: serde_json::Value) -> OfferedTool {
    OfferedTool {
        name: name.into(),
        description: String::new(),
        parameters,
    }
}

fn gemini() -> Profile {
    Profile::of(
        ProviderKind::Gemini,
        "x",
        "gemini-3",
        ProfileSettings::default(),
    )
}

#[test]
fn names_change_in_the_tools_the_history_and_the_demand_and_come_back_in_the_reply() {
    let before = ContextMessage {
        tool_calls: vec![
            call(1, "3d__render", r#"{"a b":1}"#),
            call(2, "9gone", r#"{"a b":1}"#),
        ],
        ..ContextMessage::text(MessageRole::Assistant, "")
    };
    let mut request = request(vec![user("a"), before]);
    request.tools = vec![
        tool(
            "3d__render",
            json!({"type": "object", "properties": {"a b": {"type": "integer"}}}),
        ),
        tool("_3d__render", json!({"type": "object"})),
        tool("text", json!({"type": "string"})),
    ];
    request.tool_choice = Some(ToolChoice::Tool("3d__render".into()));
    let offer = Offer::of(&mut request, &gemini());
    let names: Vec<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["__3d__render", "_3d__render"],
        "the third tool takes no object"
    );
    assert_eq!(
        request.tool_choice,
        Some(ToolChoice::Tool("__3d__render".into()))
    );
    let calls = &request.messages[1].tool_calls;
    assert_eq!(calls[0].tool_name, "__3d__render");
    assert_eq!(
        calls[0].tool_input.as_ref().unwrap().as_str(),
        r#"{"a_b":1}"#
    );
    assert_eq!(calls[1].tool_name, "_9gone");
    let called = |name: &str, arguments: &str| ModelToolCall {
        tool_name: name.into(),
        arguments: Json::parse(arguments).unwrap(),
        ..ModelToolCall::default()
    };
    let reply = ModelReply {
        tool_calls: vec![
            called("__3d__render", r#"{"a_b":2}"#),
            called("_3d__render", r#"{"a_b":3}"#),
        ],
        ..ModelReply::default()
    };
    let own = offer.restored(reply).tool_calls;
    assert_eq!(
        own,
        [
            called("3d__render", r#"{"a b":2}"#),
            called("_3d__render", r#"{"a_b":3}"#)
        ]
    );
}

#[test]
fn readers_of_a_call_see_the_tools_own_names_while_the_model_writes() {
    let mut request = request(vec![user("a")]);
    request.tools = vec![
        tool(
            "3d",
            json!({"type": "object", "properties": {"a b": {"type": "integer"}}}),
        ),
        tool("plain", json!({"type": "object"})),
    ];
    let offer = Offer::of(&mut request, &gemini());
    let mut heard: Vec<(Part, String)> = Vec::new();
    let mut hear = |part: Part, piece: &str| heard.push((part, piece.to_owned()));
    let mut listener = offer.listener(&mut hear);
    let (first, second) = (Part::Call(0), Part::Call(1));
    for (part, piece) in [
        (Part::Text, "t"),
        (first, "_3d\n{\"a"),
        (second, "plain\n{\"a_b\""),
        (first, "_b\":"),
        (first, "1}"),
        (second, ":2}"),
    ] {
        listener.delta(part, piece);
    }
    let expected = [
        (Part::Text, "t"),
        (first, "3d\n{"),
        (second, "plain\n{\"a_b\""),
        (first, "\"a b\":"),
        (first, "1}"),
        (second, ":2}"),
    ];
    assert_eq!(
        heard,
        expected.map(|(part, piece)| (part, piece.to_owned()))
    );
}
