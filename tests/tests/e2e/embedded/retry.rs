//! A failed turn is retried from its last checkpoint: paid calls and ended tools are not made again, the failed step is.

use everturn_proto::words::OnBusy;
use everturn_store::{Access, NewMessage, RetryTurn};
use everturn_tests::{
    events::{count, data, types},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

/// Calls a tool with an effect, fails once, and then answers.
fn fails_after_a_tool(request: &Request) -> Reply {
    match request.number {
        1 => Reply::text("I change something.").call("test_once", &json!({"effect": true})),
        2 => Reply::error(400, "bad_request"),
        _ => Reply::text("Changed."),
    }
}

async fn retry(stack: &Stack, conversation: &str, body: &Value) -> (u16, Value) {
    let path = format!("/conversations/{conversation}/retry");
    stack.post(&path, body).await
}

/// The request fails with this code of `not_retryable`, and changes nothing.
async fn assert_refused(stack: &Stack, conversation: &str, body: &Value) {
    let before = stack.events(conversation).await.len();
    let (status, problem) = retry(stack, conversation, body).await;
    let code = problem["code"].as_str().unwrap_or_default();
    assert_eq!((status, code), (409, "not_retryable"), "{problem}");
    assert_eq!(stack.events(conversation).await.len(), before);
}

/// The messages of a request, without what belongs to the prompt's cache.
fn messages(request: &Request) -> Value {
    request.body["messages"].clone()
}

#[tokio::test]
async fn a_retry_pays_and_runs_only_what_is_missing() {
    let stack = Stack::new(Model::start(fails_after_a_tool).await).await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("change something").await;
    let failed = stack.ended(&conversation, 1).await;
    assert_eq!(types(&failed), "user_message thought act observe error");

    let (status, first) = retry(&stack, &conversation, &json!({"message_id": message})).await;
    assert_eq!((status, &first["status"]), (202, &json!("queued")));
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe error user_message assistant_message complete"
    );
    let taken = &data(&events, "user_message")[1];
    assert_eq!(taken["retry_of"], json!(message));
    assert_eq!(
        (&taken["content"], &taken["message_id"]),
        (&json!(""), &first["message_id"])
    );
    let requests = stack.model.requests();
    assert_eq!(requests.len(), 3, "no paid call is made again");
    assert_eq!(messages(&requests[1]), messages(&requests[2]));
    assert_eq!(stack.effects().len(), 1, "the tool has run once in all");

    // The retry is stored once, whatever comes later.
    let (status, again) = retry(&stack, &conversation, &json!({"message_id": message})).await;
    assert_eq!(
        (status, &again["status"], &again["message_id"]),
        (202, &json!("accepted_before"), &first["message_id"])
    );
    assert_refused(&stack, &conversation, &json!({})).await;
    let status = format!("/conversations/{conversation}/execution-status");
    assert_eq!(stack.get(&status).await["is_running"], false);

    // The next turn sees the question, the tool and the answer, and no trace of the retry.
    let next = json!({"content": "thanks"});
    assert_eq!(stack.send(&conversation, &next).await.0, 202);
    stack.ended(&conversation, 3).await;
    let last = messages(stack.model.requests().last().unwrap());
    let roles: Vec<_> = last
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .filter(|role| role != "system")
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant", "tool", "assistant", "user"],
        "{last:#}"
    );
}

#[tokio::test]
async fn a_retry_can_fail_and_be_retried_too() {
    let model = Model::start(|request: &Request| match request.number {
        1..=3 => Reply::error(400, "bad_request"),
        _ => Reply::text("At last."),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("hello").await;
    for turns in 1..=3 {
        stack.ended(&conversation, turns).await;
        assert_eq!(retry(&stack, &conversation, &json!({})).await.0, 202);
    }
    let events = stack.ended(&conversation, 4).await;
    assert_eq!(
        types(&events),
        "user_message error user_message error user_message error user_message assistant_message complete"
    );
    let asked = data(&events, "user_message");
    for retried in &asked[1..] {
        assert_eq!(
            retried["retry_of"],
            json!(message),
            "the first message of all"
        );
    }
    let requests = stack.model.requests();
    assert!(
        requests
            .iter()
            .all(|request| messages(request) == messages(&requests[0]))
    );
}

#[tokio::test]
async fn of_two_retries_at_once_one_turn_starts() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::error(400, "bad_request"),
        _ => Reply::text("Once.").held(),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("hello").await;
    stack.ended(&conversation, 1).await;
    let body = json!({"message_id": message});
    let both = tokio::join!(
        retry(&stack, &conversation, &body),
        retry(&stack, &conversation, &body)
    );
    assert_eq!((both.0.0, both.1.0), (202, 202));
    assert_eq!(both.0.1["message_id"], both.1.1["message_id"]);
    stack.asked(2).await;
    assert_refused(&stack, &conversation, &json!({})).await;
    stack.model.release();
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(count(&events, "complete"), 1);
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn only_the_newest_turn_and_only_a_failed_turn_is_retried() {
    let model = Model::start(|request: &Request| match request.last("user").as_str() {
        "fail" => Reply::error(400, "bad_request"),
        "wait" => Reply::text("Half").held(),
        text => Reply::text(text),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    assert_refused(&stack, &conversation, &json!({})).await;
    let (conversation, failed) = stack.ask("fail").await;
    stack.ended(&conversation, 1).await;
    for (turns, text) in [(2, "answered"), (3, "wait")] {
        stack.send(&conversation, &json!({"content": text})).await;
        stack.asked(turns).await;
        if text == "wait" {
            assert_refused(&stack, &conversation, &json!({})).await;
            let cancel = format!("/conversations/{conversation}/cancel");
            stack.post(&cancel, &json!({})).await;
        }
        stack.ended(&conversation, turns).await;
        assert_refused(&stack, &conversation, &json!({})).await;
        assert_refused(&stack, &conversation, &json!({"message_id": failed})).await;
    }
    let (status, _) = retry(&stack, "unknown", &json!({})).await;
    assert_eq!(status, 404);
    assert_eq!(stack.model.requests().len(), 3);
}

#[tokio::test]
async fn a_retry_whose_gateway_is_killed_after_the_store_starts_by_itself() {
    let stack = Stack::new(Model::start(fails_after_a_tool).await).await;
    stack.configure("[reconciler]\nevery = \"500ms\"\ngrace = \"2s\"\nagain = \"2s\"\n");
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("change something").await;
    stack.ended(&conversation, 1).await;
    // The gateway has stored the retry, and its process ends before the signal.
    let (store, tenant) = (stack.store().await, Access::tenant("default"));
    let found = store
        .conversations
        .conversation(&tenant, &conversation)
        .await;
    let message = NewMessage {
        model: None,
        names_model: false,
        conversation_id: found.unwrap().unwrap().id,
        message_id: String::new(),
        client_message_id: None,
        content: String::new(),
        sent_by: None,
        attachments: Vec::new(),
        max_attached_bytes: 0,
        on_busy: OnBusy::Queue,
        max_queued: 100,
        max_turns: None,
        max_turns_of_owner: None,
    };
    let retry = RetryTurn {
        failed_message_id: None,
        message,
    };
    let stored = store.messages.retry_turn(&tenant, retry).await.unwrap();
    assert!(stored.is_new && stored.is_waiting());
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(count(&events, "complete"), 1);
    assert_eq!(stack.model.requests().len(), 3);
    assert_eq!(stack.effects().len(), 1);
}

#[tokio::test]
async fn hooks_before_the_turn_do_not_run_again() {
    let agent = "tools = []\n[agents.default.hooks]\n\
                 before_turn = [{ name = \"calculate\", input = { expression = \"{message}\" } }]\n";
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::error(400, "bad_request"),
        _ => Reply::text("Done."),
    });
    let stack = Stack::with_agent(model.await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("20 + 1").await;
    stack.ended(&conversation, 1).await;
    assert_eq!(retry(&stack, &conversation, &json!({})).await.0, 202);
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(count(&events, "complete"), 1, "{events:#?}");
    assert_eq!(count(&events, "act"), 1, "the hook has run once");
    let requests = stack.model.requests();
    assert_eq!(messages(&requests[0]), messages(&requests[1]));
}

#[tokio::test]
async fn the_text_of_the_failed_step_is_not_sent_again() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("Half of an ans").held(),
        _ => Reply::text("The whole answer."),
    });
    let stack = Stack::with_agent(model.await, "turn_timeout = \"3s\"\ntools = []\n").await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    let failed = stack.ended(&conversation, 1).await;
    assert_eq!(data(&failed, "error")[0]["code"], "turn_timeout");
    assert_eq!(count(&failed, "assistant_message"), 1, "the text is kept");
    assert_eq!(retry(&stack, &conversation, &json!({})).await.0, 202);
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(count(&events, "complete"), 1);
    let requests = stack.model.requests();
    assert_eq!(messages(&requests[0]), messages(&requests[1]));
}
