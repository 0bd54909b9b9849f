//! Resuming, rejecting, and messages whose turn is another one's, with an engine that only records.

use everturn_gateway::turns::StartOutcome;
use everturn_store::{ResumePoint, StoreError, UnfinishedTurn};
use serde_json::{Value, json};

use crate::support::TestGateway;

const MESSAGES: &str = "/conversations/c/messages";
const RESUME: &str = "/conversations/c/resume";

async fn gateway() -> TestGateway {
    let gateway = TestGateway::start().await;
    gateway.store.add("c", "default");
    gateway
}

fn point(turn: Option<(&str, Option<u32>)>, waiting: &[&str], has_begun: bool) -> ResumePoint {
    let turn = turn.map(|(message, checkpoint_step)| UnfinishedTurn {
        message_id: message.to_owned(),
        checkpoint_step,
    });
    ResumePoint {
        turn,
        waiting: waiting.iter().map(|&id| id.to_owned()).collect(),
        has_begun,
    }
}

#[tokio::test]
async fn resume_starts_what_was_accepted_and_not_finished() {
    let gateway = gateway().await;
    let cases = [
        (
            point(Some(("m", Some(3))), &["q1", "q2"], true),
            3,
            "start c m from 3, then q1 q2",
        ),
        (
            point(Some(("m", None)), &[], true),
            0,
            "start c m from 0, then ",
        ),
        (
            point(None, &["q1", "q2"], false),
            0,
            "start c q1 from 0, then q2",
        ),
    ];
    for (point, from_step, call) in cases {
        gateway.store.lock().resume_point = Some(point);
        let answer = gateway.post(RESUME, &json!({})).await;
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
    gateway.store.lock().resume_point = Some(point(None, &[], true));
    gateway
        .post(RESUME, &json!({}))
        .await
        .assert_problem(409, "turn_complete");
    gateway.store.lock().resume_point = Some(point(None, &[], false));
    gateway
        .post(RESUME, &json!({}))
        .await
        .assert_problem(404, "no_checkpoint");
    gateway.store.lock().resume_point = None;
    gateway
        .post(RESUME, &json!({}))
        .await
        .assert_problem(404, "conversation_not_found");
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
    gateway.store.lock().has_others = true;
    let send = async || {
        let body = json!({"content": "hi", "on_busy": "interrupt"});
        let sent = gateway.post(MESSAGES, &body).await.json();
        sent["message_id"].as_str().unwrap().to_owned()
    };
    let id = send().await;
    let signal = format!("signal c {id} interrupt");
    assert_eq!(gateway.turns.take(), [signal], "a workflow runs");

    *gateway.turns.is_idle.lock().unwrap() = true;
    let lost = point(Some(("lost", Some(3))), &["q1"], true);
    gateway.store.lock().resume_point = Some(lost);
    let id = send().await;
    let calls = [
        format!("signal c {id} interrupt"),
        "start c lost from 3, then q1".to_owned(),
        format!("submit c {id} interrupt"),
    ];
    assert_eq!(gateway.turns.take(), calls, "what is lost comes first");

    let rejected = json!({"content": "hi", "on_busy": "reject"});
    let rejected = gateway.post(MESSAGES, &rejected).await;
    rejected.assert_problem(409, "turn_running");
    assert_eq!(gateway.turns.take(), [""; 0]);
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
        assert!(gateway.store.lock().messages.is_empty());
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
        [format!("start c {message_id} from 0, then ")]
    );

    // Repeated before its turn took it: the workflow that runs is its own.
    *gateway.turns.start_outcome.lock().unwrap() = Some(StartOutcome::StartedBefore);
    assert_eq!(gateway.post(MESSAGES, &body).await.json(), first.json());
    // And while its own turn runs.
    gateway.store.take(&message_id, &message_id, true);
    let again = gateway.post(MESSAGES, &body).await.json();
    assert_eq!(
        (&again["message_id"], &again["status"]),
        (&json!(message_id), &json!("accepted_before"))
    );
    assert_eq!(gateway.store.lock().messages.len(), 1);
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
    assert_eq!(gateway.store.lock().messages.len(), 1);
}

#[tokio::test]
async fn a_repeated_message_wakes_the_turn_that_took_it() {
    let gateway = gateway().await;
    let body = json!({"content": "hi", "message_id": "mine", "on_busy": "interrupt"});
    let message_id = gateway.post(MESSAGES, &body).await.json()["message_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        gateway.turns.take(),
        [format!("submit c {message_id} interrupt")]
    );
    gateway.store.take(&message_id, "first", true);
    let again = gateway.post(MESSAGES, &body).await.json();
    assert_eq!(
        (&again["message_id"], &again["status"]),
        (&json!(message_id), &json!("accepted_before"))
    );
    assert_eq!(
        gateway.turns.take(),
        ["submit c first queue"],
        "and interrupts nothing"
    );
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
    gateway.store.take(&message_id, "first", false);
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
