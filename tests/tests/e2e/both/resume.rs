//! Conversations whose workflow is gone: it was terminated at the worst instants, or Temporal lost its data. What was
//! completed is neither paid nor done again, and a reader that stays connected sees what a replay shows.

use everturn_client::Frame;
use everturn_gateway::turns::TurnStarter;
use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use serde_json::{Value, json};

use crate::production::faults::persisted;

const WHOLE_TURN: &str = "user_message thought act observe assistant_message complete";

fn echo(request: &Request) -> Reply {
    Reply::text(&format!("You said {}.", request.last("user")))
}

/// Script of a model that calls a `once` tool with an effect, begins an answer that never ends, and in the next try
/// gives a whole answer.
pub(crate) fn cut_off(request: &Request) -> Reply {
    match (request.results_since_user(), request.number) {
        (0, _) => Reply::text("I change something.").call("test_once", &json!({"effect": true})),
        (_, 2) => Reply::text("This is as far as it c").held(),
        _ => Reply::tokens(300),
    }
}

pub(crate) async fn terminate(stack: &Stack, conversation: &str) {
    stack
        .turns()
        .await
        .terminate(conversation, "test")
        .await
        .unwrap();
    stack.workflow_status(conversation, "TERMINATED").await;
}

pub(crate) async fn resume(stack: &Stack, conversation: &str) -> (u16, Value) {
    stack
        .post(&format!("/conversations/{conversation}/resume"), &json!({}))
        .await
}

pub(crate) fn resuming(from_step: u32) -> (u16, Value) {
    (202, json!({"status": "resuming", "from_step": from_step}))
}

/// Runs a turn, and terminates its workflow while the answer to the second LLM call does not come.
async fn terminated_in_mid_stream() -> (Stack, [Process; 2], String) {
    let stack = Stack::new(Model::start(cut_off).await).await;
    let (worker, gateway) = stack.start().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    stack
        .send(
            &conversation,
            &json!({"content": "change something", "message_id": "mine"}),
        )
        .await;
    stack.asked(2).await;
    terminate(&stack, &conversation).await;
    (stack, [worker, gateway], conversation)
}

/// Asserts that nothing that was completed is paid or done again.
pub(crate) async fn ended_once(stack: &Stack, conversation: &str) {
    let events = stack.ended(conversation, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(events[3]["event_data"]["is_error"], false, "{events:#?}");
    assert_eq!(stack.effects().len(), 1);
    assert_eq!(
        stack.model.requests().len(),
        3,
        "only the call that was in flight is paid again"
    );
    stack.workflow_status(conversation, "COMPLETED").await;
}

#[tokio::test]
async fn a_repeated_post_brings_its_turn_back() {
    let (stack, _running, conversation) = terminated_in_mid_stream().await;
    let body = json!({"content": "change something", "message_id": "mine", "on_busy": "interrupt"});
    let (status, first) = stack.send(&conversation, &body).await;
    assert_eq!((status, &first["status"]), (202, &json!("accepted_before")));
    ended_once(&stack, &conversation).await;
    // A repeated POST of a message whose turn has ended starts nothing.
    let run_id =
        |described: &Value| described["workflowExecutionInfo"]["execution"]["runId"].clone();
    let before = run_id(&stack.workflow_status(&conversation, "COMPLETED").await);
    assert_eq!(stack.send(&conversation, &body).await, (202, first));
    assert_eq!(
        run_id(&stack.workflow_status(&conversation, "COMPLETED").await),
        before
    );
}

#[tokio::test]
async fn a_resumed_turn_may_be_reset() {
    let (stack, _running, conversation) = terminated_in_mid_stream().await;
    assert_eq!(resume(&stack, &conversation).await, resuming(0));
    ended_once(&stack, &conversation).await;
    stack.reset(&conversation).await;
    ended_once(&stack, &conversation).await;
}

#[tokio::test]
async fn its_cluster_is_lost() {
    let mut stack = Stack::new(Model::start(cut_off).await).await;
    let (worker, gateway) = stack.start().await;
    let (conversation, _) = stack.ask("change something").await;
    stack.asked(2).await;
    worker.kill().await;
    gateway.kill().await;
    // The new Temporal server has an empty database, and does not know the conversation.
    stack.move_to_own_temporal().await;
    let _running = stack.start().await;
    assert_eq!(resume(&stack, &conversation).await, resuming(0));
    ended_once(&stack, &conversation).await;
}

#[tokio::test]
async fn in_the_middle_of_a_tool_phase() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("First.").call("test_once", &json!({"effect": true})),
        1 => Reply::text("Then.")
            .call("test_once", &json!({"effect": true, "sleep_ms": 600_000}))
            .call("test_read", &json!({"effect": true, "sleep_ms": 1_500})),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("change something twice").await;
    stack.had_effects(3).await;
    terminate(&stack, &conversation).await;
    assert_eq!(resume(&stack, &conversation).await, resuming(1));
    let events = stack.ended(&conversation, 1).await;
    assert!(
        types(&events)
            .starts_with("user_message thought act observe thought act act observe observe")
    );
    assert!(
        types(&events).ends_with("assistant_message complete"),
        "{}",
        types(&events)
    );
    assert_eq!(stack.model.requests().len(), 3);
    let effects = stack.effects();
    let acts = events
        .iter()
        .filter(|event| event["event_type"] == "act")
        .map(|event| &event["event_data"]);
    for act in acts {
        let id = &act["execution_id"];
        let of_act = |event: &&Value| {
            event["event_type"] == "observe" && event["event_data"]["execution_id"] == *id
        };
        let observes: Vec<_> = events.iter().filter(of_act).collect();
        assert_eq!(observes.len(), 1, "{events:#?}");
        let times = effects.iter().filter(|line| *id == line.as_str()).count();
        let is_unknown = observes[0]["event_data"]["result"]
            .to_string()
            .contains("may or may not");
        match (
            act["tool_name"].as_str().unwrap(),
            act["step"].as_u64().unwrap(),
        ) {
            ("test_once", step) => assert_eq!((times, is_unknown), (1, step == 1), "{events:#?}"),
            _ => assert!(
                !is_unknown && (1..=2).contains(&times),
                "a tool that may run again: {times}"
            ),
        }
    }
}

#[tokio::test]
async fn with_messages_waiting() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("I was say").held(),
        _ => echo(request),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    stack.asked(1).await;
    for content in ["two", "three"] {
        assert_eq!(
            stack
                .send(&conversation, &json!({"content": content}))
                .await
                .0,
            202
        );
    }
    terminate(&stack, &conversation).await;
    assert_eq!(
        resume(&stack, &conversation).await,
        resuming(0),
        "begun, without a checkpoint"
    );
    let events = stack.ended(&conversation, 3).await;
    assert_eq!(
        types(&events),
        ["user_message assistant_message complete"; 3].join(" ")
    );
    let answers: Vec<_> = events
        .iter()
        .filter_map(|event| event["event_data"]["content"].as_str())
        .collect();
    assert_eq!(
        answers,
        [
            "one",
            "You said one.",
            "two",
            "You said two.",
            "three",
            "You said three."
        ]
    );
    assert_eq!(stack.model.requests().len(), 4);
}

#[tokio::test]
async fn before_any_turn_began() {
    let stack = Stack::new(Model::start(echo).await).await;
    let _gateway = stack.gateway().await;
    let (conversation, _) = stack.ask("one").await;
    stack.send(&conversation, &json!({"content": "two"})).await;
    terminate(&stack, &conversation).await;
    assert_eq!(
        resume(&stack, &conversation).await,
        resuming(0),
        "accepted means durable"
    );
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        types(&events),
        ["user_message assistant_message complete"; 2].join(" ")
    );
}

#[tokio::test]
async fn what_runs_is_complete_or_never_was() {
    let model = Model::start(|_: &Request| Reply::text("Whole.").held());
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let code = |(status, body): (u16, Value)| {
        (status, body["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(
        code(resume(&stack, "unknown").await),
        (404, "conversation_not_found".to_owned())
    );
    let conversation = stack.client().create_conversation(None).await.unwrap();
    assert_eq!(
        code(resume(&stack, &conversation).await),
        (404, "no_checkpoint".to_owned())
    );
    stack
        .send(&conversation, &json!({"content": "hello"}))
        .await;
    stack.asked(1).await;
    assert_eq!(
        resume(&stack, &conversation).await,
        (202, json!({"status": "running"}))
    );
    stack.model.release();
    stack.ended(&conversation, 1).await;
    assert_eq!(
        code(resume(&stack, &conversation).await),
        (409, "turn_complete".to_owned())
    );
    assert_eq!(stack.model.requests().len(), 1);
    let turns = stack.turns().await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    for nothing_runs in [conversation.as_str(), "unknown"] {
        turns.terminate(nothing_runs, "test").await.unwrap();
    }
}

#[tokio::test]
async fn a_newer_message_ends_a_lost_turn() {
    let model = Model::start(|request: &Request| {
        match (request.last("user").as_str(), request.results_since_user()) {
            ("one", 0) => Reply::text("Slowly.")
                .call("test_once", &json!({"effect": true, "sleep_ms": 600_000})),
            _ => echo(request),
        }
    });
    let stack = Stack::new(model.await).await;
    stack.configure("[reconciler]\nlost_turns = \"end\"\n");
    let _running = stack.start().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let is_last = |frame: &Frame| frame.event == "complete";
    let harm = async {
        stack.send(&conversation, &json!({"content": "one"})).await;
        stack.had_effects(1).await;
        terminate(&stack, &conversation).await;
        assert_eq!(
            stack
                .send(&conversation, &json!({"content": "two"}))
                .await
                .0,
            202
        );
    };
    let (live, ()) = tokio::join!(stack.frames_until(&conversation, 0, is_last), harm);
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe error user_message assistant_message complete"
    );
    assert!(
        events[3]["event_data"]["result"]
            .to_string()
            .contains("unknown"),
        "{events:#?}"
    );
    assert_eq!(events[4]["event_data"]["code"], "turn_lost");
    let replayed = stack.frames_until(&conversation, 0, is_last).await;
    assert_eq!(
        persisted(&live),
        persisted(&replayed),
        "live and replayed differ"
    );
    assert_eq!(stack.effects().len(), 1);
}
