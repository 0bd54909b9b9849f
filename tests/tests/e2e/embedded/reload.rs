//! Agents that change while processes run: the processes take the changed files over, and a turn keeps its agent.

use std::fs;

use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    stack::{Process, Stack},
    temporal,
};
use serde_json::{Value, json};

const FAST: &str = "[reload]\ninterval = \"100ms\"\n";

/// A file of `agents.d` with an agent that uses the tool `calculate`.
fn agent(name: &str, more: &str) -> String {
    format!(
        "[agents.{name}]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = [\"calculate\"]\n{more}\n"
    )
}

/// Writes a file below the stack's folder.
fn write(stack: &Stack, path: &str, text: &str) {
    let path = stack.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A stack with the agent `helper`, whose prompt is in a file.
async fn stack(model: Model) -> Stack {
    let stack = Stack::new(model).await;
    stack.configure(FAST);
    write(&stack, "agents.d/helper.md", "Old prompt.");
    let helper = agent("helper", "instructions_file = \"helper.md\"");
    write(&stack, "agents.d/helper.toml", &helper);
    stack
}

/// A model that calls a tool and then answers. It is held at its first answer.
async fn two_steps() -> Model {
    Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call("calculate", &json!({"expression": "1 + 2"}))
            .held(),
        _ => Reply::text("Three."),
    })
    .await
}

/// The prompt of each request to the model.
fn prompts(stack: &Stack) -> Vec<String> {
    let requests = stack.model.requests();
    let prompt = |request: &Request| {
        let first = request.body["messages"][0]["content"].clone();
        let text = first.as_str().map(str::to_owned);
        text.unwrap_or_else(|| first[0]["text"].as_str().unwrap_or_default().to_owned())
    };
    requests.iter().map(prompt).collect()
}

/// Asks an agent in a new conversation.
async fn ask(stack: &Stack, agent: &str) -> String {
    let client = stack.client();
    let conversation = client.create_conversation(Some(agent)).await.unwrap();
    client.submit(&conversation, "count", None).await.unwrap();
    conversation
}

#[tokio::test]
async fn a_running_turn_keeps_its_prompt_and_the_next_turn_has_the_new_prompt() {
    let stack = stack(two_steps().await).await;
    let _running = stack.start().await;
    let conversation = ask(&stack, "helper").await;
    stack.asked(1).await;
    write(&stack, "agents.d/helper.md", "New prompt.");
    for log in ["worker", "gateway"] {
        stack.logged(log, "changed agent helper").await;
    }
    stack.model.release();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe assistant_message complete"
    );
    assert_eq!(prompts(&stack), ["Old prompt.", "Old prompt."]);
    let client = stack.client();
    client.submit(&conversation, "again", None).await.unwrap();
    stack.ended(&conversation, 2).await;
    let prompts = prompts(&stack);
    assert_eq!(prompts[2..], ["New prompt.", "New prompt."], "{prompts:?}");
}

#[tokio::test]
async fn an_invalid_change_changes_nothing_and_is_told() {
    let stack = stack(Model::start(|_: &Request| Reply::text("Done.")).await).await;
    let _running = stack.start().await;
    stack.logged("worker", "worker is running").await;
    write(
        &stack,
        "agents.d/helper.toml",
        "[agents.helper]\nmodle = \"m\"\n",
    );
    for log in ["worker", "gateway"] {
        stack
            .logged(log, "helper.toml:2:1: unknown field `modle`")
            .await;
    }
    let conversation = ask(&stack, "helper").await;
    stack.ended(&conversation, 1).await;
    assert_eq!(prompts(&stack), ["Old prompt."]);
    // The operator's table waits for a restart, and the author's table is in use.
    write(
        &stack,
        "agents.d/helper.toml",
        &agent("helper", "samples = [\"Hello\"]"),
    );
    stack.configure("[limits]\nopen_streams = 7\n");
    for log in ["worker", "gateway"] {
        stack.logged(log, "changed agent helper").await;
        stack.logged(log, "[limits]").await;
    }
    let agents = stack.get("/agents").await;
    let helper = &agents["agents"][1];
    assert_eq!(
        (&helper["name"], &helper["samples"]),
        (&json!("helper"), &json!(["Hello"]))
    );
}

/// Starts a worker with a folder of its own for agents. Its log has the name of the folder.
fn worker_in(stack: &Stack, folder: &str) -> Process {
    let main = fs::read_to_string(stack.path("everturn.toml")).unwrap();
    let path = format!("{folder}/everturn.toml");
    write(stack, &path, &main);
    let path = stack.path(&path);
    stack.spawn(
        &["worker"],
        folder,
        &[("EVERTURN_CONFIG", path.to_str().unwrap())],
    )
}

/// The pods of a cluster get a changed ConfigMap at different times.
#[tokio::test]
async fn an_agent_that_some_processes_do_not_know_yet_waits_for_a_process_that_does() {
    let model = Model::start(|_: &Request| Reply::text("Done.")).await;
    // Every gateway takes a change over at a time of its own, and this test waits for a single gateway.
    let stack = Stack::new(model).await.with_gateways(1);
    stack.configure(&format!("{FAST}[worker]\nwait_for_peer = \"5m\"\n"));
    let _gateway = stack.gateway().await;
    let _workers = (worker_in(&stack, "one"), worker_in(&stack, "two"));

    for log in ["one", "two"] {
        stack.logged(log, "worker is running").await;
    }

    // A gateway that does not know the agent says so, with the agents that it knows.
    write(&stack, "one/agents.d/fresh.toml", &agent("fresh", ""));
    stack.logged("one", "added agent fresh").await;
    let (status, problem) = stack
        .post("/conversations", &json!({"agent": "fresh"}))
        .await;
    assert_eq!((status, &problem["code"]), (400, &json!("unknown_agent")));
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("The agents of your tenant are: default."),
        "{detail}"
    );

    // The gateway and one of two workers know the agent: the other worker leaves the turns alone.
    write(&stack, "agents.d/fresh.toml", &agent("fresh", ""));
    stack.logged("gateway", "added agent fresh").await;
    for _ in 0..6 {
        let conversation = ask(&stack, "fresh").await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(types(&events), "user_message assistant_message complete");
    }

    // Only the gateway knows the agent: the turn waits for the first worker that gets the file.
    write(&stack, "agents.d/late.toml", &agent("late", ""));
    stack.logged("gateway", "added agent late").await;
    let conversation = ask(&stack, "late").await;
    stack.logged("one", "no agent `late`").await;
    write(&stack, "two/agents.d/late.toml", &agent("late", ""));
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert!(data(&events, "error").is_empty());
}

#[tokio::test]
async fn dev_with_watch_tells_on_the_terminal_what_has_changed() {
    let stack = stack(Model::start(|_: &Request| Reply::text("Done.")).await).await;
    let ports = [temporal::free_port(), temporal::free_port()].map(|port| port.to_string());
    let (listen, binary) = (format!("127.0.0.1:{}", ports[0]), temporal::binary());
    let args = [
        "dev",
        "--watch",
        "--listen",
        &listen,
        "--temporal-port",
        &ports[1],
        "--temporal-bin",
        binary.to_str().unwrap(),
    ];
    let _dev = stack.spawn(&args, "dev", &[]);
    stack.logged("dev", "Ctrl-C stops everything").await;
    write(&stack, "agents.d/helper.md", "New prompt.");
    stack.logged("dev", "reloaded: changed agent helper").await;
    // An author without a key learns with the demo model.
    let demo = "[agents.demo]\nprovider = \"demo\"\nmodel = \"demo\"\n";
    write(&stack, "agents.d/more.toml", demo);
    stack.logged("dev", "reloaded: added agent demo").await;
    write(&stack, "agents.d/more.toml", "[agents");
    stack.logged("dev", "not reloaded").await;
    let url = format!("http://{listen}/api/v1/agent/agents");
    let agents: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
    let names = agents["agents"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "demo", "helper"]);
}

#[tokio::test]
async fn a_worker_without_an_agent_does_not_start_and_its_gateway_tells_callers() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Never.")).await).await;
    fs::write(stack.path("everturn.toml"), "").unwrap();
    let said = stack.refused(&["worker"], &[("OPENAI_API_KEY", "k")]).await;
    assert!(
        said.contains("no agent is configured. Write a table [agents.default]"),
        "{said}"
    );
    let _gateway = stack.gateway().await;
    let (status, problem) = stack.post("/conversations", &json!({})).await;
    assert_eq!((status, &problem["code"]), (400, &json!("unknown_agent")));
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("No agent serves your tenant"), "{detail}");
}
