//! Steer, cancel, queue and interrupt, also at the instant of a save (invariant 3, idempotent saves).

use everturn_tests::{
    events::{contents, types},
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use serde_json::json;

fn echo(request: &Request) -> Reply {
    Reply::text(&format!("You said {}.", request.last("user")))
}

/// Runs a turn until its worker stops in the final save, after the save has taken effect.
async fn in_the_final_save() -> (Stack, [Process; 2], String) {
    let stack = Stack::new(Model::start(echo).await).await;
    let gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at("save.end.after");
    let (conversation, _) = stack.ask("one").await;
    stack.reached("save.end.after").await;
    (stack, [worker, gateway], conversation)
}

async fn submit(stack: &Stack, conversation: &str, content: &str, on_busy: &str) -> String {
    let body = json!({"content": content, "on_busy": on_busy});
    let (status, answer) = stack.send(conversation, &body).await;
    assert_eq!(status, 202, "{answer}");
    answer["message_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_message_during_the_final_save_is_the_next_turn() {
    for on_busy in ["queue", "steer", "interrupt"] {
        let (stack, _running, conversation) = in_the_final_save().await;
        submit(&stack, &conversation, "two", on_busy).await;
        stack.pass("save.end.after");
        let events = stack.ended(&conversation, 2).await;
        let turn = "user_message assistant_message complete";
        assert_eq!(types(&events), format!("{turn} {turn}"), "{on_busy}");
        assert_eq!(
            contents(&events, "assistant_message"),
            ["You said one.", "You said two."],
            "{on_busy}"
        );
        assert_eq!(stack.model.requests().len(), 2, "{on_busy}");
    }
}

#[tokio::test]
async fn a_cancel_during_the_final_save_comes_too_late() {
    let (stack, _running, conversation) = in_the_final_save().await;
    let (status, _) = stack
        .post(&format!("/conversations/{conversation}/cancel"), &json!({}))
        .await;
    assert_eq!(status, 202);
    stack.cancel_workflow(&conversation).await;
    stack.pass("save.end.after");
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    stack.workflow_status(&conversation, "COMPLETED").await;
}

#[tokio::test]
async fn a_steer_joins_the_running_turn() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("First.").call("test_read", &json!({})),
        _ => echo(request),
    });
    let stack = Stack::new(model.await).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "one").await;
    stack.held(&conversation, 1).await;
    submit(&stack, &conversation, "rather two", "steer").await;
    stack.let_go(&conversation);
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe user_message assistant_message complete"
    );
    assert_eq!(
        contents(&events, "assistant_message"),
        ["You said rather two."]
    );
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn a_cancel_keeps_the_text_so_far_and_what_waits() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("As far as this").held(),
        _ => echo(request),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("one").await;
    stack.asked(1).await;
    submit(&stack, &conversation, "two", "queue").await;
    for _twice in 0..2 {
        let cancel = json!({"message_id": message});
        let (status, _) = stack
            .post(&format!("/conversations/{conversation}/cancel"), &cancel)
            .await;
        assert_eq!(status, 202);
    }
    let events = stack.ended(&conversation, 2).await;
    let expected =
        "user_message assistant_message cancelled user_message assistant_message complete";
    assert_eq!(types(&events), expected);
    assert_eq!(events[1]["event_data"]["content"], "As far as this");
    assert_eq!(events[1]["event_data"]["partial"], true);
}

/// The worker is told to stop while it calls the model, and lets the call go on. Another worker hears of the cancel.
#[tokio::test]
async fn a_cancel_in_a_workers_drain_keeps_the_text_so_far() {
    let model = Model::start(|_: &Request| Reply::text("As far as this").held());
    let stack = Stack::new(model.await).await;
    stack.configure("[worker]\ngraceful_shutdown = \"10m\"\n");
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    stack.asked(1).await;
    let _next = stack.spawn(&["worker"], "next", &[]);
    let cancelled = async {
        stack.logged("worker", "stopping:").await;
        let path = format!("/conversations/{conversation}/cancel");
        assert_eq!(stack.post(&path, &json!({})).await.0, 202);
        stack.ended(&conversation, 1).await
    };
    let (code, events) = tokio::join!(worker.terminate(), cancelled);
    assert_eq!(code, Some(0));
    assert_eq!(types(&events), "user_message assistant_message cancelled");
    assert_eq!(events[1]["event_data"]["content"], "As far as this");
    assert_eq!(stack.model.requests().len(), 1);
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_answers_the_newer_message_first() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("I was saying").held(),
        _ => echo(request),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    stack.asked(1).await;
    submit(&stack, &conversation, "later", "queue").await;
    submit(&stack, &conversation, "now", "interrupt").await;
    let events = stack.ended(&conversation, 3).await;
    assert_eq!(contents(&events, "user_message"), ["one", "now", "later"]);
    assert_eq!(
        contents(&events, "assistant_message"),
        ["I was saying", "You said now.", "You said later."]
    );
}

#[tokio::test]
async fn a_cancel_observes_every_open_act() {
    let model = Model::start(|_: &Request| {
        Reply::text("Slowly.")
            .call("test_once", &json!({"effect": true, "sleep_ms": 600_000}))
            .call("test_read", &json!({"sleep_ms": 600_000}))
            .call("calculate", &json!({"expression": "1 + 1"}))
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("one").await;
    stack.saw(&conversation, "observe").await;
    stack.cancel_workflow(&conversation).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act act act observe observe observe cancelled"
    );
    stack.workflow_status(&conversation, "CANCELED").await;
    assert_eq!(stack.model.requests().len(), 1);
}

#[tokio::test]
async fn a_message_that_waits_can_be_cancelled() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("First.").call("test_read", &json!({})),
        _ => echo(request),
    });
    let stack = Stack::new(model.await).await;
    let _gateway = stack.gateway().await;
    let _worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "one").await;
    stack.held(&conversation, 1).await;
    for on_busy in ["queue", "steer"] {
        let message = submit(&stack, &conversation, on_busy, on_busy).await;
        for _twice in 0..2 {
            let cancel = json!({"message_id": message});
            let (status, answer) = stack
                .post(&format!("/conversations/{conversation}/cancel"), &cancel)
                .await;
            assert_eq!((status, &answer["status"]), (202, &json!("cancelling")));
        }
    }
    stack.let_go(&conversation);
    let events = stack.ended(&conversation, 3).await;
    let first = "user_message thought act observe assistant_message complete";
    assert_eq!(
        types(&events),
        format!("{first} user_message cancelled user_message cancelled")
    );
    assert_eq!(contents(&events, "user_message"), ["one", "queue", "steer"]);
    assert_eq!(events[7]["event_data"]["reason"], "cancelled by the user");
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn a_message_that_would_rather_be_rejected() {
    let stack = Stack::new(Model::start(echo).await).await;
    let _gateway = stack.gateway().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let path = format!("/conversations/{conversation}/messages");
    let post = async |content: &str, id: &str| {
        stack
            .post(
                &path,
                &json!({"content": content, "message_id": id, "on_busy": "reject"}),
            )
            .await
    };
    // Two equal requests come at once. Neither takes back the message that the other has started.
    let (first, second) = tokio::join!(post("one", "mine"), post("one", "mine"));
    assert_eq!(
        (first.0, &first.1["status"], &first),
        (202, &json!("queued"), &second)
    );
    // No worker has taken the message yet, so only the workflow knows that it was accepted.
    assert_eq!(post("one", "mine").await, first);
    let (status, refused) = post("two", "other").await;
    assert_eq!((status, &refused["code"]), (409, &json!("turn_running")));
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    stack.workflow_status(&conversation, "COMPLETED").await;
    let status = stack
        .get(&format!("/conversations/{conversation}/execution-status"))
        .await;
    assert_eq!(
        status["is_running"], false,
        "nothing of the rejected one waits"
    );
    assert_eq!(post("two", "other").await.0, 202);
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        contents(&events, "assistant_message"),
        ["You said one.", "You said two."]
    );
}
