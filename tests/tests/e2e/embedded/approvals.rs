//! Tool calls that a person must approve, answered through the gateway, the chat or the command line. A call that was
//! approved runs as it was approved, at most once. Any other call never runs, and the model is told why.

use everturn_proto::{ids, limits::MAX_JSON_LEVELS};
use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

/// An agent for which every call of `test_once` needs an approval, and no call of `test_read`.
pub(crate) const ASKING: &str = r#"
tools = [{ name = "test_once", approval = "always" }, "test_read"]
"#;

/// The agent of [`ASKING`], where answers through the engine are switched on.
pub(crate) const THROUGH_ENGINE: &str = r#"
tools = [{ name = "test_once", approval = "always" }, "test_read"]
[approvals]
allow_signal = true
"#;

/// Script of a model that calls one `once` tool, then says what its result was.
pub(crate) fn one_call(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("May I?").call("test_once", &json!({"effect": true})),
        _ => Reply::text("Done."),
    }
}

pub(crate) const APPROVED_TURN: &str = "user_message thought act approval_requested approval_resolved observe assistant_message complete";

pub(crate) fn code((status, body): &(u16, Value)) -> (u16, &str) {
    (*status, body["code"].as_str().unwrap_or_default())
}

/// Waits until so many calls of the conversation wait for an approval, and returns them.
pub(crate) async fn pending(stack: &Stack, conversation: &str, count: usize) -> Vec<Value> {
    wait::until(&format!("{count} calls wait for an approval"), || async {
        let list = stack
            .get(&format!("/conversations/{conversation}/approvals"))
            .await;
        list["approvals"]
            .as_array()
            .filter(|calls| calls.len() == count)
            .cloned()
    })
    .await
}

/// Sends an answer once, and returns status and body.
pub(crate) async fn try_answer(
    stack: &Stack,
    conversation: &str,
    call: &Value,
    mut body: Value,
) -> (u16, Value) {
    if body["input_hash"].is_null() {
        body["input_hash"] = call["input_hash"].clone();
    }
    let id = call["execution_id"].as_str().unwrap();
    stack
        .post(
            &format!("/conversations/{conversation}/approvals/{id}"),
            &body,
        )
        .await
}

/// Sends an answer until a worker has taken it, and returns status and body.
pub(crate) async fn answer(
    stack: &Stack,
    conversation: &str,
    call: &Value,
    body: Value,
) -> (u16, Value) {
    wait::until("a worker takes the answer", || async {
        let answered = try_answer(stack, conversation, call, body.clone()).await;
        (answered.0 != 503).then_some(answered)
    })
    .await
}

async fn signal(stack: &Stack, conversation: &str, input: &Value) {
    let (workflow_id, input) = (ids::workflow_id(conversation), input.to_string());
    let args = [
        "workflow",
        "signal",
        "--workflow-id",
        &workflow_id,
        "--name",
        "resolve_approval",
        "--input",
        &input,
    ];
    assert!(stack.temporal.cli(&args).await.status.success());
}

/// Waits until the workflow's search attribute TurnStatus has this value.
async fn turn_status(stack: &Stack, conversation: &str, expected: &str) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let data = STANDARD.encode(format!("{expected:?}"));
    let workflow_id = ids::workflow_id(conversation);
    wait::until(&format!("TurnStatus is {expected}"), || async {
        let described = stack.temporal.describe(&workflow_id).await;
        let attributes = &described["workflowExecutionInfo"]["searchAttributes"]["indexedFields"];
        (attributes["TurnStatus"]["data"] == data.as_str()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn approved_or_denied_by_a_signal() {
    for (decision, observed, effects) in [("approve", "execution_id", 1), ("deny", "denied", 0)] {
        let stack = Stack::with_agent(Model::start(one_call).await, THROUGH_ENGINE).await;
        let _running = stack.start().await;
        let (conversation, _) = stack.ask("do it").await;
        let call = pending(&stack, &conversation, 1).await.remove(0);
        let (id, hash) = (&call["execution_id"], &call["input_hash"]);
        assert_eq!(stack.effects().len(), 0);
        for ignored in [
            json!({"execution_id": id, "decision": "approve", "input_hash": "of another input"}),
            json!({"execution_id": id, "decision": "approve"}),
            json!({"execution_id": id, "decision": "perhaps", "input_hash": hash}),
            json!({"execution_id": "exec_0", "decision": "approve", "input_hash": hash}),
            json!([]),
        ] {
            signal(&stack, &conversation, &ignored).await;
        }
        signal(
            &stack,
            &conversation,
            &json!({"execution_id": id, "decision": decision, "input_hash": hash}),
        )
        .await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(types(&events), APPROVED_TURN);
        assert!(
            events[5]["event_data"]["result"]
                .to_string()
                .contains(observed),
            "{events:#?}"
        );
        assert_eq!(stack.effects().len(), effects);
        stack.workflow_status(&conversation, "COMPLETED").await;
    }
}

#[tokio::test]
async fn approved_through_the_gateway() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    turn_status(&stack, &conversation, "waiting").await;
    let events = stack.events(&conversation).await;
    let requested = data(&events, "approval_requested")[0];
    for field in [
        "execution_id",
        "tool_name",
        "tool_input",
        "call_id",
        "input_hash",
        "expires_at",
    ] {
        assert_eq!(call[field], requested[field], "{field}");
    }
    assert_eq!(
        (&call["message_id"], &call["tool_input"]),
        (&json!(message), &json!({"effect": true}))
    );

    let wrong = [
        (
            json!({"decision": "approve", "input_hash": "of another input"}),
            (409, "approval_mismatch"),
        ),
        (json!({"decision": "perhaps"}), (400, "invalid_body")),
        (
            json!({"decision": "approve", "tool_input": [1]}),
            (400, "invalid_body"),
        ),
        (
            json!({"decision": "deny", "remember": true}),
            (400, "invalid_body"),
        ),
    ];
    for (body, expected) in wrong {
        assert_eq!(
            code(&try_answer(&stack, &conversation, &call, body.clone()).await),
            expected,
            "{body}"
        );
    }
    let unknown = json!({"execution_id": "exec_0", "input_hash": "x"});
    let yes = json!({"decision": "approve"});
    assert_eq!(
        code(&try_answer(&stack, &conversation, &unknown, yes.clone()).await),
        (404, "execution_not_found")
    );
    assert_eq!(
        code(&try_answer(&stack, "nowhere", &call, yes.clone()).await),
        (404, "conversation_not_found")
    );
    assert_eq!(stack.effects().len(), 0, "nothing of it let the tool run");

    let (status, answered) = answer(&stack, &conversation, &call, yes.clone()).await;
    assert_eq!((status, &answered["decision"]), (200, &json!("approved")));
    let again = try_answer(&stack, &conversation, &call, json!({"decision": "deny"})).await;
    assert_eq!(code(&again), (409, "approval_answered"));
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    assert_eq!(stack.effects().len(), 1);
    pending(&stack, &conversation, 0).await;
    turn_status(&stack, &conversation, "running").await;
}

#[tokio::test]
async fn approved_with_another_input() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("May I?").call("test_once", &json!({"effect": false})),
        _ => Reply::text("Done."),
    });
    let stack = Stack::with_agent(model.await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    // The worker's SDK cannot read a payload with such an input: the turn would stand still for ever.
    let deep = (0..MAX_JSON_LEVELS).fold(json!(1), |inner, _| json!([inner]));
    let deep = json!({"decision": "approve", "tool_input": {"effect": deep}});
    let (status, problem) = try_answer(&stack, &conversation, &call, deep).await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_body")));
    let edited = json!({"decision": "approve", "tool_input": {"effect": true}});
    assert_eq!(answer(&stack, &conversation, &call, edited).await.0, 200);
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(stack.effects().len(), 1, "what the person gave is what ran");
    let resolved = data(&events, "approval_resolved")[0];
    assert_eq!(
        (&resolved["edited"], &resolved["tool_input"]),
        (&json!(true), &json!({"effect": true}))
    );
    let told = stack.model.requests()[1].body["messages"].to_string();
    assert!(
        told.contains(r#"{\"effect\":true}"#) || told.contains(r#"{\"effect\": true}"#),
        "{told}"
    );
    let timeline = stack
        .get(&format!("/conversations/{conversation}/messages"))
        .await;
    let shown = timeline["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["type"] == "tool_call")
        .unwrap();
    assert_eq!(shown["toolInput"], json!({"effect": true}));
}

#[tokio::test]
async fn the_model_is_told_why_it_was_denied() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let no = json!({"decision": "deny", "reason": "it is Sunday"});
    assert_eq!(answer(&stack, &conversation, &call, no).await.0, 200);
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    assert_eq!(data(&events, "observe")[0]["is_error"], true);
    assert!(
        stack.model.requests()[1]
            .last("tool")
            .contains("it is Sunday")
    );
    assert_eq!(stack.effects().len(), 0);
}

#[tokio::test]
async fn nobody_answers_in_time() {
    let agent = r#"tools = [{ name = "test_once", approval = { timeout = "1s" } }]"#;
    let stack = Stack::with_agent(Model::start(one_call).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    assert_eq!(data(&events, "approval_resolved")[0]["decision"], "expired");
    assert!(stack.model.requests()[1].last("tool").contains("in time"));
    let late = try_answer(
        &stack,
        &conversation,
        data(&events, "approval_requested")[0],
        json!({"decision": "approve"}),
    );
    assert_eq!(code(&late.await), (409, "approval_expired"));
    assert_eq!(stack.effects().len(), 0);
}

#[tokio::test]
async fn of_two_answers_at_once_one_counts() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let (yes, no) = tokio::join!(
        answer(&stack, &conversation, &call, json!({"decision": "approve"})),
        answer(&stack, &conversation, &call, json!({"decision": "deny"})),
    );
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    let is_approved = yes.0 == 200;
    let refused = if is_approved { &no } else { &yes };
    assert_eq!(code(refused), (409, "approval_answered"), "{yes:?} {no:?}");
    assert_eq!(
        (no.0 == 200, stack.effects().len()),
        (!is_approved, usize::from(is_approved))
    );
}

#[tokio::test]
async fn several_wait_at_once() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("May I?")
            .call("test_once", &json!({"effect": true}))
            .call("test_read", &json!({}))
            .call("test_once", &json!({"effect": true}))
            .call("test_once", &json!({})),
        _ => Reply::text("Done."),
    });
    // The approval depends on the arguments, so the last call needs none.
    let agent = r#"tools = [{ name = "test_once", approval = { when = { required = ["effect"] } } }, "test_read"]"#;
    let stack = Stack::with_agent(model.await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let observed = async |count: usize| {
        wait::until(&format!("{count} tools have ended"), || async {
            let events = stack.events(&conversation).await;
            (data(&events, "observe").len() == count).then_some(())
        })
        .await;
    };
    let calls = pending(&stack, &conversation, 2).await;
    observed(2).await;
    assert_eq!(
        answer(
            &stack,
            &conversation,
            &calls[1],
            json!({"decision": "approve"})
        )
        .await
        .0,
        200
    );
    observed(3).await;
    assert_eq!(pending(&stack, &conversation, 1).await[0], calls[0]);
    assert_eq!(
        answer(
            &stack,
            &conversation,
            &calls[0],
            json!({"decision": "deny"})
        )
        .await
        .0,
        200
    );
    stack.ended(&conversation, 1).await;
    assert_eq!(
        stack.effects(),
        [calls[1]["execution_id"].as_str().unwrap()]
    );
    let messages = stack.model.requests()[1].body["messages"].clone();
    let results = messages
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool");
    let is_denied: Vec<_> = results
        .map(|result| result["content"].to_string().contains("denied"))
        .collect();
    assert_eq!(is_denied, [true, false, false, false], "in call order");
}

#[tokio::test]
async fn do_not_ask_again_in_this_conversation() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let always = json!({"decision": "approve", "remember": true});
    assert_eq!(answer(&stack, &conversation, &call, always).await.0, 200);
    stack.ended(&conversation, 1).await;
    stack
        .client()
        .submit(&conversation, "and again", None)
        .await
        .unwrap();
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        types(&events[8..]),
        "user_message thought act observe assistant_message complete"
    );
    assert_eq!(stack.effects().len(), 2);
    let (another, _) = stack.ask("do it").await;
    pending(&stack, &another, 1).await;
}

#[tokio::test]
async fn cancelled_while_it_waits() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    turn_status(&stack, &conversation, "waiting").await;
    stack.client().cancel(&conversation).await.unwrap();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act approval_requested approval_resolved observe cancelled"
    );
    assert_eq!(
        data(&events, "approval_resolved")[0]["decision"],
        "cancelled"
    );
    let late = try_answer(&stack, &conversation, &call, json!({"decision": "approve"})).await;
    assert_eq!(code(&late), (409, "approval_answered"));
    turn_status(&stack, &conversation, "running").await;
    // The late answer does not delay the turn of the next message.
    stack
        .client()
        .submit(&conversation, "do it", None)
        .await
        .unwrap();
    let call = pending(&stack, &conversation, 1).await.remove(0);
    assert_eq!(
        answer(&stack, &conversation, &call, json!({"decision": "approve"}))
            .await
            .0,
        200
    );
    stack.ended(&conversation, 2).await;
    assert_eq!(stack.effects().len(), 1);
}

#[tokio::test]
async fn a_turn_that_waits_holds_no_slot() {
    let model = Model::start(|request: &Request| match request.last("user").as_str() {
        "hello" => Reply::text("Hello."),
        _ => one_call(request),
    });
    let agent = format!(
        "{ASKING}\n[worker]\nmax_concurrent_activities = 2\nmax_concurrent_workflow_tasks = 2\n"
    );
    let stack = Stack::with_agent(model.await, &agent).await;
    let _running = stack.start().await;
    let mut waiting = Vec::new();
    for _ in 0..6 {
        let (conversation, _) = stack.ask("do it").await;
        pending(&stack, &conversation, 1).await;
        waiting.push(conversation);
    }
    let (another, _) = stack.ask("hello").await;
    stack.ended(&another, 1).await;
    for conversation in waiting {
        assert_eq!(stack.events(&conversation).await.len(), 4, "it still waits");
    }
}

#[tokio::test]
async fn the_chat_asks_nobody_without_a_terminal() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let url = stack.url();
    for (options, decision, effects) in [(vec![], "denied", 0), (vec!["--approve"], "approved", 1)]
    {
        let args = [vec!["chat", "--url", &url], options, vec!["do it"]].concat();
        let mut command = stack.command(&args, &[]);
        let output = command
            .stdin(std::process::Stdio::null())
            .output()
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains(decision), "{text}");
        assert_eq!(stack.effects().len(), effects, "{text}");
    }
}
