//! An agent with a thousand tools of ten MCP servers does a task that needs three of them, on each wire, although its worker
//! is killed after the first search. Every request passes the validator of the wire's provider.

use std::{fs, path::Path};

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request, Wire},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

/// The tools that the task needs. No two of them are of one server.
const NEEDED: [&str; 3] = [
    "s2__translate_passport",
    "s6__merge_rocket",
    "s9__audit_zoo",
];
const FINDER: &str = "find_tools";

/// Returns the tools of a request, by name, with their schemas.
fn offered(request: &Request) -> Vec<(String, Value)> {
    let tools = match request.wire {
        Wire::Gemini => request.body["tools"][0]["functionDeclarations"].clone(),
        _ => request.body["tools"].clone(),
    };
    let tools = tools.as_array().cloned().unwrap_or_default();
    let read = |tool: &Value| match request.wire {
        Wire::OpenAi => (
            tool["function"]["name"].clone(),
            tool["function"]["parameters"].clone(),
        ),
        Wire::Responses => (tool["name"].clone(), tool["parameters"].clone()),
        Wire::Anthropic => (tool["name"].clone(), tool["input_schema"].clone()),
        Wire::Gemini => (tool["name"].clone(), tool["parametersJsonSchema"].clone()),
    };
    let tools = tools.iter().map(read);
    tools
        .map(|(name, schema)| (name.as_str().unwrap().to_owned(), schema))
        .collect()
}

/// A model that searches each needed tool, and calls the tool as soon as the request offers it.
fn worker_of_the_office(request: &Request) -> Reply {
    let body = request.body.to_string();
    let tools = offered(request);
    let is_done = |tool: &&str| body.contains(&format!("done: {}", &tool[4..]));
    let Some(next) = NEEDED.iter().find(|tool| !is_done(tool)) else {
        return Reply::text("All three are done.");
    };
    if let Some((name, schema)) = tools.iter().find(|(name, _)| name == next) {
        let properties = schema["properties"].as_object().unwrap();
        // A model knows only the name that the request has.
        let key = properties
            .keys()
            .find(|key| key.starts_with("reference"))
            .unwrap();
        return Reply::text("I do it.").call(name, &json!({ key: "R 7" }));
    }
    let query = next[4..].replace('_', " ");
    Reply::text("I search.").call(FINDER, &json!({"query": query, "max_tools": 3}))
}

/// Returns the tables of an agent with the tools of ten servers.
fn agent(stack: &Stack, wire: Wire) -> String {
    let kind = wire.kind();
    let url = stack.model.base_url_of(wire);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/embedded/many_tools.py");
    let script = script.display().to_string();
    let calls = stack.path("calls").display().to_string();
    let names: Vec<String> = (0..10).map(|number| format!("s{number}__*")).collect();
    let servers: Vec<String> = (0..10)
        .map(|number| {
            let command = ["python3", &script, &number.to_string(), &calls].map(str::to_owned);
            format!("[mcp.s{number}]\ncommand = {command:?}\nprocess.unconfined = true\n")
        })
        .collect();
    format!(
        "[providers.{kind}]\nkind = \"{kind}\"\nbase_url = \"{url}\"\napi_key_env = \"SCRIPTED_KEY\"\n\
         [agents.office]\nprovider = \"{kind}\"\nmodel = \"a-model\"\ntools = {names:?}\n{}",
        servers.concat()
    )
}

async fn works_on(wire: Wire) {
    let stack = Stack::new(Model::start(worker_of_the_office).await).await;
    stack.configure(&agent(&stack, wire));
    let _gateway = stack.gateway().await;
    let failpoint = "tool.after_record";
    let worker = stack.worker_stopping_at(failpoint);
    let client = stack.client();
    let conversation = client.create_conversation(Some("office")).await.unwrap();
    client
        .submit(&conversation, "do three things", None)
        .await
        .unwrap();
    stack.reached(failpoint).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert!(
        types(&events).ends_with("assistant_message complete"),
        "{events:#?}"
    );

    let calls = fs::read_to_string(stack.path("calls")).unwrap();
    let calls: Vec<Value> = calls
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected =
        NEEDED.map(|tool| json!({"tool": &tool[4..], "arguments": {"reference no.": "R 7"}}));
    assert_eq!(calls, expected, "{wire:?}: the server gets its own names");
    let requests = stack.model.requests();
    let most = if wire == Wire::Anthropic { 256 } else { 128 };
    for request in &requests {
        let names: Vec<String> = offered(request).into_iter().map(|(name, _)| name).collect();
        assert!(
            names.len() <= most && names.contains(&FINDER.to_owned()),
            "{} tools",
            names.len()
        );
        assert!(!names.iter().any(|name| name.contains("impossible")));
    }
    // Found tools stay.
    let last = offered(requests.last().unwrap());
    for needed in NEEDED {
        assert!(last.iter().any(|(name, _)| name == needed), "{needed}");
    }
    // The events have the tool's own names, too.
    let acts = events.iter().filter(|event| event["event_type"] == "act");
    let acts: Vec<&Value> = acts
        .map(|event| &event["event_data"])
        .filter(|act| act["tool_name"] == NEEDED[0])
        .collect();
    assert_eq!(acts[0]["tool_input"], json!({"reference no.": "R 7"}));
    is_left_out(&stack, wire).await;
}

/// The tool that no provider takes is named in the log and in the list of agents.
async fn is_left_out(stack: &Stack, wire: Wire) {
    let listed = wait::until("the left-out tool is listed", || async {
        let agents = stack.get("/agents").await;
        let agents = agents["agents"].as_array().unwrap().clone();
        let office = agents
            .into_iter()
            .find(|agent| agent["name"] == "office")
            .unwrap();
        let left_out = office["left_out_tools"].clone();
        (left_out != json!([])).then_some(left_out)
    });
    assert_eq!(
        listed.await,
        json!([{
            "tool": "s0__aaa_impossible",
            "model": format!("{}/a-model", wire.kind()),
            "reason": "the schema of its input allows no JSON object, and the arguments of a call are an object",
        }])
    );
    stack.logged("worker", "a tool is left out").await;
}

#[tokio::test]
async fn on_chat_completions() {
    works_on(Wire::OpenAi).await;
}

#[tokio::test]
async fn on_the_responses_api() {
    works_on(Wire::Responses).await;
}

#[tokio::test]
async fn on_the_wire_of_anthropic() {
    works_on(Wire::Anthropic).await;
}

#[tokio::test]
async fn on_the_wire_of_gemini() {
    works_on(Wire::Gemini).await;
}
