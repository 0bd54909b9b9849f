//! Random conversations: messages as the store may have them, of models at any provider.

use everturn_proto::{Json, event::Attachment, turn::ToolCall, words::MessageRole};
use everturn_store::{ContextMessage, ToolResult};
use proptest::{prelude::*, sample::select, strategy::Union};
use serde_json::{Value, json};

use crate::{
    files::{SentFile, SentFiles},
    output::OutputFormat,
    parameters::{Parameters, ReasoningEffort},
    port::{ModelRequest, OfferedTool, signer},
    provider::ProviderKind::{self, Anthropic, Azure, Gemini, OpenAi, OpenAiResponses},
    refused::Who,
    tool_choice::ToolChoice,
};

/// Kind, host and model of every provider with demands of its own.
pub(super) const PROFILES: [(ProviderKind, &str, &str, Who); 13] = [
    (OpenAi, "api.openai.com", "gpt-4o", Who::OpenAi),
    (OpenAi, "api.openai.com", "gpt-5.1", Who::OpenAi),
    (Azure, "x.openai.azure.com", "gpt-4o", Who::OpenAi),
    (OpenAi, "localhost", "llama-3", Who::Template),
    (OpenAi, "localhost", "deepseek-v3", Who::Template),
    (OpenAi, "localhost", "mistral-small", Who::MistralModel),
    (OpenAi, "api.mistral.ai", "x", Who::Mistral),
    (OpenAi, "api.deepseek.com", "deepseek-v4-pro", Who::DeepSeek),
    (OpenAi, "api.moonshot.ai", "kimi-k2.6", Who::DeepSeek),
    (Anthropic, "api.anthropic.com", "claude", Who::Anthropic),
    (Gemini, "x.googleapis.com", "gemini-2.5-pro", Who::Gemini),
    (Gemini, "x.googleapis.com", "gemini-3-pro", Who::Gemini3),
    (
        OpenAiResponses,
        "api.openai.com",
        "gpt-5.1-x",
        Who::Responses,
    ),
];

/// The files of every conversation: an image, a PDF, a text, and a file that the model does not get.
const FILES: [(&str, &str, &str); 4] = [
    ("blob_1", "image/png", ""),
    ("blob_2", "application/pdf", ""),
    ("blob_3", "text/plain", "notes.txt"),
    ("blob_4", "application/zip", "all of it.zip"),
];

const TEXTS: [&str; 6] = [
    "",
    " \n",
    "Hello.",
    " Two\n\nlines. ",
    "{\"n\": 1}",
    "\u{0}é😀",
];

/// A request with a random conversation. Provider and model are left to the test.
pub(super) fn requests() -> impl Strategy<Value = ModelRequest> {
    let instructions = prop::option::of(select(&["", " ", "Be brief."][..]));
    let limit = prop::option::of(1_u32..9_000);
    let messages = prop::collection::vec(messages(), 0..9);
    let output = prop::option::of((any::<bool>(), any::<bool>()));
    let more = (
        any::<bool>(),
        any::<bool>(),
        output,
        parameters(),
        choices(),
    );
    (messages, instructions, limit, more).prop_map(
        |(messages, instructions, max_output_tokens, more)| {
            let (has_tools, wants_text, output, parameters, tool_choice) = more;
            ModelRequest {
                instructions: instructions.map(str::to_owned),
                messages: numbered(messages),
                files: files(),
                tools: has_tools.then(tool).into_iter().collect(),
                max_output_tokens,
                wants_text,
                output: output.map(format),
                parameters,
                tool_choice,
                ..ModelRequest::default()
            }
        },
    )
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let efforts = prop::option::of(select(&ReasoningEffort::ALL[..]));
    let seeds = prop::option::of(any::<u32>());
    let budgets = prop::option::of(select(&[0_u32, 1024, 30_000, 1_000_000][..]));
    let parallel = prop::option::of(any::<bool>());
    (efforts, seeds, budgets, parallel).prop_map(
        |(reasoning_effort, seed, thinking_budget, parallel_tool_calls)| Parameters {
            reasoning_effort,
            thinking_budget,
            parallel_tool_calls,
            seed,
            ..Parameters::default()
        },
    )
}

/// Demands on the tool calls, among them a demand for a tool that the request does not offer.
fn choices() -> impl Strategy<Value = Option<ToolChoice>> {
    let texts = ["auto", "required", "none", "weather", "another_tool"];
    prop::option::of(select(texts.to_vec()).prop_map(ToolChoice::read))
}

fn tool() -> OfferedTool {
    OfferedTool {
        name: "weather".into(),
        description: "Tells the weather.".into(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    }
}

fn format((as_instruction, has_schema): (bool, bool)) -> OutputFormat {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    OutputFormat {
        name: "answer".into(),
        schema: has_schema.then_some(schema),
        as_instruction,
    }
}

fn files() -> SentFiles {
    let mut files = SentFiles::default();
    files.add("blob_1", SentFile::Base64("aGVsbG8=".into()));
    files.add("blob_2", SentFile::Base64("aGVsbG8=".into()));
    files.add("blob_3", SentFile::Text("Some notes.".into()));
    files.add("blob_4", SentFile::Told("(A file.)".into()));
    files
}

fn messages() -> impl Strategy<Value = ContextMessage> {
    let users = (roles(), texts(), prop::collection::vec(attachments(), 0..3));
    let users = users.prop_map(|(role, content, attachments)| ContextMessage {
        attachments,
        ..ContextMessage::text(role, content)
    });
    let calls = prop::collection::vec((calls(), results()), 1..4);
    let calling = (texts(), calls, any::<bool>(), 0_u8..20).prop_map(calling);
    let answers = texts().prop_map(|text| ContextMessage::text(MessageRole::Assistant, text));
    let runs = select(&["run_1", "run_2"][..]);
    let any = prop_oneof![3 => users, 4 => calling, 3 => answers];
    (any, runs).prop_map(|(message, run)| ContextMessage {
        agent_execution_id: run.to_owned(),
        ..message
    })
}

fn roles() -> impl Strategy<Value = MessageRole> {
    prop_oneof![
        6 => Just(MessageRole::User),
        1 => Just(MessageRole::Summary),
        1 => Just(MessageRole::Unknown("moderator".to_owned())),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    select(&TEXTS[..]).prop_map(str::to_owned)
}

fn attachments() -> impl Strategy<Value = Attachment> {
    select(&FILES[..]).prop_map(|(blob_id, media_type, file_name)| Attachment {
        blob_id: blob_id.to_owned(),
        media_type: media_type.to_owned(),
        file_name: file_name.to_owned(),
        bytes: 5,
    })
}

/// A reply with calls. `are_turned`: the results are not in the order of the calls.
fn calling(
    (content, calls, are_turned, cut): (String, Vec<(ToolCall, Option<ToolResult>)>, bool, u8),
) -> ContextMessage {
    let (tool_calls, results): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
    let mut results: Vec<Option<ToolResult>> = results;
    if cut == 0 {
        // The results of a killed worker never came.
        results.fill(None);
    }
    let mut message = ContextMessage {
        tool_calls,
        ..ContextMessage::text(MessageRole::Assistant, content)
    };
    // The number of its call marks a result until the calls have their ids.
    for (at, result) in results.into_iter().enumerate() {
        message.tool_results.extend(result.map(|result| ToolResult {
            execution_id: at.to_string(),
            ..result
        }));
    }
    if are_turned {
        message.tool_results.reverse();
    }
    message
}

fn calls() -> impl Strategy<Value = ToolCall> {
    // The ids of nine digits are the ends of ids that Everturn gives.
    let ids = Union::new_weighted(vec![
        (1, "".boxed()),
        (3, "call_[0-9]".boxed()),
        (3, "00000000[0-9]".boxed()),
        (1, "[a-zA-Z0-9]{9}".boxed()),
        (1, "chatcmpl-tool-[0-9a-f]{32}".boxed()),
        (1, "toolu_[a-zA-Z0-9]{18}".boxed()),
        (1, "functions\\.weather:[0-9]".boxed()),
        (1, "[a-z0-9_-]{41,70}".boxed()),
        (1, "[é./ \"]{1,4}".boxed()),
    ]);
    let long = "x".repeat(70);
    let names = [
        "weather",
        "no tool!",
        "",
        "9lives",
        "mcp.files/read",
        "ä",
        &long,
    ];
    let names = names.map(str::to_owned).to_vec();
    let inputs = [
        "{}",
        r#"{"city":"Oslo","id":12345678901234567890.10}"#,
        r#"{"a":{"b":[null,1e30,"\ud83d\ude00"]},"a":2}"#,
        r#""{\"city\":\"Ro""#,
        "null",
        "[1,2]",
        "7",
    ];
    let inputs = prop::option::of(select(inputs.to_vec()));
    let signers = PROFILES.map(|(_, _, model, _)| signer("p", model));
    let signed = prop::collection::vec(signatures(), 0..3);
    (ids, select(names), inputs, signed, select(signers.to_vec())).prop_map(
        |(call_id, tool_name, input, signatures, signed_by)| ToolCall {
            call_id,
            tool_name,
            tool_input: input.and_then(|input| Json::parse(input).ok()),
            signatures,
            signed_by,
            ..ToolCall::default()
        },
    )
}

/// The opaque parts of every kind of provider. A provider of a name may have had another kind before.
fn signatures() -> impl Strategy<Value = String> {
    select(vec![
        json!({"type": "reasoning_content", "text": "Hm."}).to_string(),
        json!({"type": "reasoning_details", "details": [{"type": "reasoning.text", "text": "Hm."}]})
            .to_string(),
        json!({"type": "extra_content", "value": {"google": {"thought_signature": "c2ln"}}})
            .to_string(),
        json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}).to_string(),
        json!({"type": "redacted_thinking", "data": "ZGF0YQ=="}).to_string(),
        json!({"type": "reasoning", "id": "rs_", "summary": [], "encrypted_content": "ZW5j"})
            .to_string(),
        "c2lnbmF0dXJl".to_owned(),
    ])
}

/// A result of a call; `None`: the call has no result.
fn results() -> impl Strategy<Value = Option<ToolResult>> {
    let file = r#"{"blob_id": "blob_1", "type": "image/png", "bytes": 5}"#;
    let values = [
        "\"\"",
        "\" \"",
        "null",
        "{\"t\":12}",
        "\"plain text\"",
        file,
    ];
    let values = select(values.map(str::to_owned).to_vec());
    let results = (values, any::<bool>()).prop_map(|(value, is_error)| ToolResult {
        execution_id: String::new(),
        call_id: String::new(),
        tool_name: "weather".to_owned(),
        result: Json::parse(value).unwrap(),
        is_error,
    });
    prop::option::weighted(0.9, results)
}

/// Gives the calls their ids, and the items of a Responses API, too.
fn numbered(mut messages: Vec<ContextMessage>) -> Vec<ContextMessage> {
    let (mut count, mut items) = (0, 0);
    for message in &mut messages {
        let first = count;
        for call in &mut message.tool_calls {
            call.execution_id = format!("exec_{count:012}");
            count += 1;
            for signature in &mut call.signatures {
                if let Ok(Value::Object(mut item)) = serde_json::from_str(signature)
                    && item.contains_key("id")
                {
                    item.insert("id".to_owned(), format!("rs_{items}").into());
                    *signature = Value::Object(item).to_string();
                    items += 1;
                }
            }
        }
        for result in &mut message.tool_results {
            let at: usize = result.execution_id.parse().unwrap();
            result.execution_id = format!("exec_{:012}", first + at);
        }
    }
    messages
}
