//! Resuming, rejecting, and messages whose turn is another one's, with an engine that only records.

use everturn_gateway::turns::StartOutcome;
use everturn_store::StoreError;
use serde_json::{Value, json};

use crate::support::{TestGateway, store::TestStore};

const MESSAGES: &str = "/conversations/c/messages";
const RESUME: &str = "/conversations/c/resume";

async fn gateway() -> TestGateway {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway
}

/// A turn of the message `m` that has not ended. Step 3 is its last with a reply, if it has one.
fn unfinished(store: &TestStore, conversation: &str, has_reply: bool) {
    store.begin(conversation, "m", conversation);
    if has_reply {
        store.reply(conversation, 3);
    }
}

#[tokio::test]
async fn resume_starts_what_was_accepted_and_not_finished() {
    let gateway = gateway().await;
    let store = &gateway.store;
    for id in ["replied", "begun"] {
        store.add(id, "default");
    }
    unfinished(store, "replied", true);
    unfinished(store, "begun", false);
    for id in ["replied", "c"] {
        store.queue(id, "q1");
        store.queue(id, "q2");
    }
    for (id, from_step, call) in [
        ("replied", 3, "start replied m from 3, then others"),
        ("begun", 0, "start begun m from 0"),
        ("c", 0, "start c q1 from 0, then others"),
    ] {
        let path = format!("/conversations/{id}/resume");
        let answer = gateway.post(&path, &json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()),
            (202, json!({"status": "resuming", "from_step": from_step}))
        );
        assert_eq!(gateway.turns.take(), [call]);
    }
    for outcome in [StartOutcome::Busy, StartOutcome::StartedBefore] {
        *gateway.turns.start_outcome.lock().unwrap() = Some(outcome);
        let answer = gateway.post(RESUME, &json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()),
            (202, json!({"status": "running"})),
            "{outcome:?}"
        );
    }
    *gateway.turns.is_down.lock().unwrap() = true;
    gateway
        .post(RESUME, &json!({}))
        .await
        .assert_problem(503, "temporal_unavailable");
}

#[tokio::test]
async fn resume_of_nothing_is_a_problem() {
    let gateway = gateway().await;
    gateway
        .post(RESUME, &json!({}))
        .await
        .assert_problem(404, "no_checkpoint");
    gateway.store.take("c", "m", "m", false);
    gateway
        .post(RESUME, &json!({}))
        .await
        .assert_problem(409, "turn_complete");
    gateway.store.remove("c");
    gateway
        .post(RESUME, &json!({}))
        .await
        .assert_problem(404, "conversation_not_found");
    gateway.store.add("c", "default");
    gateway.store.lock().broken = Some(|| StoreError::Unavailable("secret".into()));
    gateway
        .post(RESUME, &json!({}))
        .await
        .assert_problem(503, "store_unavailable");
    assert_eq!(gateway.turns.take(), [""; 0]);
}

/// The turn of a newer message would end one that is only lost, and would overtake messages that wait.
#[tokio::test]
async fn a_message_comes_after_what_has_not_ended() {
    let gateway = gateway().await;
    unfinished(&gateway.store, "c", true);
    let send = async || {
        let body = json!({"content": "hi", "on_busy": "interrupt"});
        let sent = gateway.post(MESSAGES, &body).await.json();
        sent["message_id"].as_str().unwrap().to_owned()
    };
    let first = send().await;
    let signal = format!("signal c {first}");
    assert_eq!(gateway.turns.take(), [signal], "a workflow runs");

    *gateway.turns.is_idle.lock().unwrap() = true;
    *gateway.turns.starts_run.lock().unwrap() = true;
    let id = send().await;
    let signal = format!("signal c {id}");
    let start = "start c m from 3, then others".to_owned();
    let calls = [signal.clone(), start, signal];
    assert_eq!(gateway.turns.take(), calls, "what is lost comes first");

    let rejected = json!({"content": "hi", "on_busy": "reject"});
    let rejected = gateway.post(MESSAGES, &rejected).await;
    rejected.assert_problem(409, "turn_running");
    assert_eq!(gateway.turns.take(), [""; 0]);
}

#[tokio::test]
async fn a_message_overtakes_nothing_when_the_started_workflow_is_terminated() {
    let gateway = gateway().await;
    unfinished(&gateway.store, "c", true);
    *gateway.turns.is_idle.lock().unwrap() = true;
    let before = gateway.store.messages().len();
    let body = json!({"content": "hi", "message_id": "mine"});
    gateway
        .post(MESSAGES, &body)
        .await
        .assert_problem(503, "temporal_unavailable");
    let calls = gateway.turns.take();
    let is_start = |call: &&String| call.starts_with("start c m from 3");
    assert!(calls.iter().filter(is_start).count() > 1, "{calls:?}");
    let submits = calls.iter().filter(|call| call.starts_with("submit"));
    assert_eq!(submits.count(), 0, "{calls:?}");
    assert_eq!(gateway.store.messages().len(), before + 1, "it is stored");
}

#[tokio::test]
async fn a_rejected_message_leaves_nothing_behind() {
    let gateway = gateway().await;
    let body = json!({"content": "hi", "message_id": "mine", "on_busy": "reject"});
    *gateway.turns.start_outcome.lock().unwrap() = Some(StartOutcome::Busy);
    for _twice in 0..2 {
        gateway
            .post(MESSAGES, &body)
            .await
            .assert_problem(409, "turn_running");
        assert!(gateway.store.messages().is_empty());
    }
    gateway.turns.take();

    *gateway.turns.start_outcome.lock().unwrap() = Some(StartOutcome::Started);
    let first = gateway.post(MESSAGES, &body).await;
    assert_eq!(
        (first.status.as_u16(), first.json()["status"].as_str()),
        (202, Some("queued")),
        "{}",
        first.text
    );
    let message_id = first.json()["message_id"].as_str().unwrap().to_owned();
    assert_eq!(
        gateway.turns.take(),
        [format!("start c {message_id} from 0")]
    );

    // Repeated before its turn took it: the workflow that runs is its own.
    *gateway.turns.start_outcome.lock().unwrap() = Some(StartOutcome::StartedBefore);
    assert_eq!(gateway.post(MESSAGES, &body).await.json(), first.json());
    // And while its own turn runs.
    gateway.store.take("c", &message_id, &message_id, true);
    let again = gateway.post(MESSAGES, &body).await.json();
    assert_eq!(
        (&again["message_id"], &again["status"]),
        (&json!(message_id), &json!("accepted_before"))
    );
    assert_eq!(gateway.store.messages().len(), 1);
}

#[tokio::test]
async fn a_reject_does_not_take_back_what_was_stored_before() {
    let gateway = gateway().await;
    let queued = gateway
        .post(MESSAGES, &json!({"content": "hi", "message_id": "mine"}))
        .await;
    assert_eq!(queued.status, 202);
    *gateway.turns.start_outcome.lock().unwrap() = Some(StartOutcome::Busy);
    let body = json!({"content": "hi", "message_id": "mine", "on_busy": "reject"});
    gateway
        .post(MESSAGES, &body)
        .await
        .assert_problem(409, "turn_running");
    assert_eq!(gateway.store.messages().len(), 1);
}

#[tokio::test]
async fn a_repeated_message_wakes_the_turn_that_took_it() {
    let gateway = gateway().await;
    let body = json!({"content": "hi", "message_id": "mine", "on_busy": "interrupt"});
    let message_id = gateway.post(MESSAGES, &body).await.json()["message_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(gateway.turns.take(), [format!("submit c {message_id}")]);
    gateway.store.take("c", &message_id, "first", true);
    let again = gateway.post(MESSAGES, &body).await.json();
    assert_eq!(
        (&again["message_id"], &again["status"]),
        (&json!(message_id), &json!("accepted_before"))
    );
    assert_eq!(gateway.turns.take(), ["look c"], "and interrupts nothing");
}

#[tokio::test]
async fn chat_follows_the_turn_that_a_message_joined() {
    let gateway = gateway().await;
    let steer = gateway
        .post(
            MESSAGES,
            &json!({"content": "hi", "message_id": "mine", "on_busy": "steer"}),
        )
        .await;
    let message_id = steer.json()["message_id"].as_str().unwrap().to_owned();
    gateway.store.take("c", &message_id, "first", false);
    gateway
        .store
        .append("c", "first", "user_message", r#"{"message_id":"first"}"#);
    gateway
        .store
        .append("c", &message_id, "user_message", r#"{"message_id":"mine"}"#);
    gateway.store.append("c", "first", "complete", "{}");
    let body = json!({"message": "hi", "message_id": "mine", "conversation_id": "c"});
    let mut chat = gateway.chat(&body).await;
    assert_eq!(chat.names(1).await, ["replay"]);
    let opening: Value = serde_json::from_str(&chat.next().await.unwrap().data).unwrap();
    assert_eq!(opening["message_id"], "first", "whose turn this is");
    assert_eq!(
        chat.names(3).await,
        ["user_message 1", "complete 3", "end 3"]
    );
    assert!(chat.next().await.is_none());
}
