//! Sub-agents: the one order of events in a tree of them, how they end, and their limits.

mod as_tools;
mod tree;

use everturn_proto::ids;
use everturn_tests::{
    events::{count, data},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

/// Returns the configuration of three agents: `default` delegates to `lead`, which delegates to `helper`. `more` is
/// added to `[agents.default]`.
fn agents(more: &str) -> String {
    let rest = |name: &str, keys: &str| {
        format!(
            "[agents.{name}]\nprovider = \"scripted\"\nmodel = \"scripted\"\ninstructions = \"{name}\"\n{keys}\n"
        )
    };
    let lead = rest("lead", "description = \"plans\"\ndelegates = [\"helper\"]");
    let helper = rest("helper", "tools = [\"test_once\"]");
    format!("delegates = [\"lead\", \"helper\"]\n{more}\n{lead}{helper}")
}

async fn stack(script: impl Fn(&Request) -> Reply + Send + Sync + 'static, more: &str) -> Stack {
    Stack::with_agent(Model::start(script).await, &agents(more)).await
}

fn delegate(reply: Reply, agent: &str, task: &str) -> Reply {
    reply.call("delegate", &json!({"agent": agent, "task": task}))
}

/// Returns whether the request comes from this agent: the instructions of each sub-agent are its name.
fn is(request: &Request, agent: &str) -> bool {
    request.last("system") == agent
}

/// Returns the script of a turn with three leads at once, each with a helper. `helper` is the script of the helpers.
fn tree(helper: impl Fn(&Request) -> Reply) -> impl Fn(&Request) -> Reply {
    move |request| {
        let (task, results) = (request.last("user"), request.results_since_user());
        if is(request, "helper") {
            return helper(request);
        }
        match (is(request, "lead"), results) {
            (true, 0) => delegate(
                Reply::text("I need help."),
                "helper",
                &format!("{task}, in detail"),
            ),
            (true, _) => Reply::text(&format!("Lead did {task}.")),
            (false, 0) => ["one", "two", "three"]
                .into_iter()
                .fold(Reply::text("I share this out."), |reply, task| {
                    delegate(reply, "lead", task)
                }),
            (false, _) => Reply::text("All done."),
        }
    }
}

fn answering(request: &Request) -> Reply {
    Reply::text(&format!("Helper did {}.", request.last("user")))
}

async fn agent_executions(stack: &Stack, conversation: &str) -> Vec<Value> {
    let page = stack
        .get(&format!("/conversations/{conversation}/executions"))
        .await;
    page["executions"].as_array().cloned().unwrap_or_default()
}

/// Returns the number of workflows of the conversation that run, as the engine says.
async fn running(stack: &Stack, conversation: &str) -> usize {
    let query = format!("ConversationId=\"{conversation}\" AND ExecutionStatus=\"Running\"");
    stack.temporal.list(&query).await.len()
}

/// Asserts that all agents of [`tree`] completed: the turn's own, three leads, and a helper of each.
fn assert_tree_succeeded(events: &[Value]) {
    assert_eq!(
        (count(events, "sub_agent_start"), count(events, "complete")),
        (6, 7),
        "{events:#?}"
    );
    assert!(
        data(events, "observe")
            .iter()
            .all(|observe| observe["is_error"] == false),
        "{events:#?}"
    );
}

/// Returns how many of the model's requests meet the condition.
fn requests(stack: &Stack, is_such: impl Fn(&Request) -> bool) -> usize {
    let requests = stack.model.requests();
    requests.iter().filter(|request| is_such(request)).count()
}

async fn nothing_runs(stack: &Stack, conversation: &str) {
    wait::until("no workflow of the conversation runs", || async {
        (running(stack, conversation).await == 0).then_some(())
    })
    .await;
    let agent_executions = agent_executions(stack, conversation).await;
    assert!(
        agent_executions
            .iter()
            .all(|execution| execution["status"] != "running"),
        "{agent_executions:#?}"
    );
}

#[tokio::test]
async fn cancel_in_the_middle_leaves_nothing_running() {
    let stack = stack(tree(|_| Reply::text("As far as this").held()), "").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Do much.").await;
    stack.asked(1 + 3 + 3).await;
    assert_eq!(agent_executions(&stack, &conversation).await.len(), 7);
    stack.client().cancel(&conversation).await.unwrap();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        (count(&events, "cancelled"), count(&events, "observe")),
        (7, 6),
        "{events:#?}"
    );
    assert_eq!(
        count(&events, "assistant_message"),
        3,
        "what the helpers said so far is kept"
    );
    nothing_runs(&stack, &conversation).await;
}

#[tokio::test]
async fn a_killed_worker_loses_no_sub_agent() {
    let helper = |request: &Request| match request.results_since_user() {
        0 => Reply::text("I change something.").call("test_once", &json!({"effect": true})),
        _ => Reply::text("Helper did it.").held(),
    };
    let stack = stack(tree(helper), "").await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker();
    let (conversation, _) = stack.ask("Do much.").await;
    stack.asked(1 + 3 + 3 + 3).await;
    worker.kill().await;
    stack.model.release();
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_tree_succeeded(&events);
    assert_eq!(stack.effects().len(), 3, "each tool runs once");
    nothing_runs(&stack, &conversation).await;
}

#[tokio::test]
async fn a_terminated_turn_is_resumed_with_its_sub_agents() {
    let stack = stack(tree(|request| answering(request).held()), "").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Do much.").await;
    stack.asked(1 + 3 + 3).await;
    stack.terminate(&conversation).await;
    stack.workflow_status(&conversation, "TERMINATED").await;
    stack.model.release();
    let (status, body) = stack
        .post(&format!("/conversations/{conversation}/resume"), &json!({}))
        .await;
    assert_eq!(status, 202, "{body}");
    let events = stack.ended(&conversation, 1).await;
    assert_tree_succeeded(&events);
    let of_default = requests(&stack, |r| !is(r, "helper") && !is(r, "lead"));
    let of_leads = requests(&stack, |r| is(r, "lead"));
    assert_eq!(
        (of_default, of_leads),
        (2, 6),
        "what was paid is not paid again"
    );
    nothing_runs(&stack, &conversation).await;
}

/// The sub-agents of the old run may still be at work. The new run finds them by the same ids, and starts them or waits
/// for them.
#[tokio::test]
async fn a_reset_turn_finds_its_sub_agents() {
    let stack = stack(tree(|request| answering(request).held()), "").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Do much.").await;
    stack.asked(1 + 3 + 3).await;
    stack.reset(&conversation).await;
    stack.model.release();
    let events = stack.ended(&conversation, 1).await;
    assert_tree_succeeded(&events);
    let of_default = requests(&stack, |r| !is(r, "helper") && !is(r, "lead"));
    assert_eq!(of_default, 2, "what was paid is not paid again");
    nothing_runs(&stack, &conversation).await;
}

#[tokio::test]
async fn a_sub_agent_that_fails_is_an_observe() {
    let script = |request: &Request| match (is(request, "helper"), request.results_since_user()) {
        (true, _) => Reply::error(400, "bad_request"),
        (false, 0) => delegate(Reply::text("Help."), "helper", "fail"),
        (false, _) => Reply::text("I could not."),
    };
    let stack = stack(script, "").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Try.").await;
    let events = stack.ended(&conversation, 1).await;
    let observe = data(&events, "observe")[0];
    assert_eq!(observe["is_error"], true);
    assert!(
        observe["result"]["error"]
            .as_str()
            .unwrap()
            .contains("llm_bad_request"),
        "{observe}"
    );
    assert_eq!(
        (count(&events, "error"), count(&events, "complete")),
        (1, 1)
    );
    let agent_executions = agent_executions(&stack, &conversation).await;
    assert_eq!(agent_executions[1]["status"], "failed");
    nothing_runs(&stack, &conversation).await;
}

#[tokio::test]
async fn a_sub_agent_that_is_terminated_is_an_observe() {
    let script = |request: &Request| match (is(request, "helper"), request.results_since_user()) {
        (true, _) => Reply::text("As far as this").held(),
        (false, 0) => delegate(Reply::text("Help."), "helper", "wait"),
        (false, _) => Reply::text("I could not."),
    };
    let stack = stack(script, "").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Try.").await;
    stack.asked(2).await;
    let events = stack.events(&conversation).await;
    let execution_id = data(&events, "act")[0]["execution_id"].as_str().unwrap();
    let workflow_id = ids::sub_agent_workflow_id(&conversation, execution_id);
    let terminate = ["workflow", "terminate", "--workflow-id", &workflow_id];
    stack.temporal.succeed(&terminate).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "error")[0]["code"], "sub_agent_lost");
    let observe = data(&events, "observe")[0];
    assert!(
        observe["result"]["error"]
            .as_str()
            .unwrap()
            .contains("terminated"),
        "{observe}"
    );
    nothing_runs(&stack, &conversation).await;
}

/// Asserts that a tree with this limit starts as many sub-agents as it may, and that the calls for the others say why
/// they were refused.
async fn is_limited(limit: &str, sub_agents: usize, refused_calls: usize, reason: &str) {
    let stack = stack(tree(answering), limit).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Do much.").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        (count(&events, "sub_agent_start"), count(&events, "observe")),
        (sub_agents, 6),
        "{events:#?}"
    );
    let refused = data(&events, "observe")
        .into_iter()
        .filter(|observe| observe["is_error"] == true);
    assert!(
        refused
            .clone()
            .all(|observe| observe["result"].to_string().contains(reason))
    );
    assert_eq!(refused.count(), refused_calls);
    nothing_runs(&stack, &conversation).await;
}

#[tokio::test]
async fn depth_and_number_of_sub_agents_are_limited() {
    is_limited("max_depth = 1", 3, 3, "deeper than 1").await;
    is_limited("max_sub_agents = 4", 4, 2, "started 4 sub-agents").await;
}

#[tokio::test]
async fn a_turn_that_runs_out_of_time_ends_with_its_sub_agents() {
    let stack = stack(
        tree(|_| Reply::text("As far as this").held()),
        "turn_timeout = \"4s\"",
    )
    .await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Do much.").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "error")[0]["code"], "turn_timeout");
    assert_eq!(
        count(&events, "sub_agent_start"),
        count(&events, "cancelled"),
        "{events:#?}"
    );
    nothing_runs(&stack, &conversation).await;
}

#[tokio::test]
async fn a_sub_agent_may_be_asked_for_and_may_ask() {
    let script = |request: &Request| match (is(request, "helper"), request.results_since_user()) {
        (true, 0) => Reply::text("May I?").call("test_once", &json!({"effect": true})),
        (true, _) => Reply::text("I did."),
        (false, 0) => delegate(Reply::text("Help."), "helper", "ask first"),
        (false, _) => Reply::text("It is done."),
    };
    let agents = agents(r#"tools = [{ name = "delegate", approval = "always" }]"#).replace(
        r#"tools = ["test_once"]"#,
        r#"tools = [{ name = "test_once", approval = "always" }]"#,
    );
    let stack = Stack::with_agent(Model::start(script).await, &agents).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Try.").await;
    for asked in 0..2 {
        let request = wait::until("an approval is asked for", || async {
            let events = stack.events(&conversation).await;
            data(&events, "approval_requested")
                .get(asked)
                .map(|request| (*request).clone())
        })
        .await;
        assert_eq!(
            count(&stack.events(&conversation).await, "sub_agent_start"),
            asked
        );
        let execution_id = request["execution_id"].as_str().unwrap();
        let answer = json!({"decision": "approve", "input_hash": request["input_hash"]});
        let path = format!("/conversations/{conversation}/approvals/{execution_id}");
        // The request can be seen as soon as it is stored. The turn may not wait for the answer yet, and refuse it.
        wait::until("the answer is taken", || async {
            let (status, body) = stack.post(&path, &answer).await;
            assert!(matches!(status, 200 | 503), "{body}");
            (status == 200).then_some(())
        })
        .await;
    }
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(stack.effects().len(), 1);
    assert!(
        data(&events, "observe")
            .iter()
            .all(|observe| observe["is_error"] == false),
        "{events:#?}"
    );
}

#[tokio::test]
async fn a_tool_is_told_who_calls_it_and_how_deep() {
    let script = |request: &Request| {
        let agent = ["lead", "helper"]
            .into_iter()
            .find(|name| is(request, name));
        let reply = Reply::text("So be it.");
        match (agent, request.results_since_user()) {
            (None, 0) => delegate(reply.call("test_once", &json!({})), "lead", "look"),
            (Some("lead"), 0) => delegate(reply, "helper", "look"),
            (Some(_), 0) => reply.call("test_once", &json!({})),
            _ => reply,
        }
    };
    let stack = stack(script, "tools = [\"test_once\"]").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Go.").await;
    let events = stack.ended(&conversation, 1).await;
    let mut depths = Vec::new();
    for observe in data(&events, "observe") {
        if observe["tool_name"] == "test_once" {
            let told = &observe["result"];
            assert_eq!(told["agent_execution_id"], observe["agent_execution_id"]);
            depths.push(told["depth"].as_u64().unwrap());
        }
    }
    depths.sort_unstable();
    assert_eq!(depths, [0, 2], "{events:#?}");
}
