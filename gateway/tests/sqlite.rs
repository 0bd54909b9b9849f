//! The gateway on the real store, with a test that does what a worker does.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use everturn_gateway::{GatewayConfig, GatewayState, Ports};
use everturn_proto::{
    LogId, SealedStep, ids,
    turn::{AgentDefinition, LlmCompleteState, SaveEnd, SaveRequest, save_request::Batch},
    words::{AgentExecutionStatus, FinishReason},
};
use everturn_store::{
    BeginTurn, BlobFiles, BlobRules, ClaimedCall, EventWriter, OnUnknownAgent, StepClaim,
    StepClaims, StepKey, TurnStart, Turns, sqlite::SqliteStore,
};
use everturn_stream::{Announcement, InProcessStream, Part, StreamWriter, TextWriter};
use serde_json::{Value, json};

use crate::support::{Answer, RecordingTurns, Sse, client, listen};

/// A worker and a gateway in one process.
struct Stack {
    store: SqliteStore,
    stream: InProcessStream,
    address: SocketAddr,
}

impl Stack {
    async fn start() -> Self {
        let store = SqliteStore::open_in_memory().await.unwrap();
        let stream = InProcessStream::default();
        let ports = Ports {
            consents: None,
            counts: None,
            deliveries: None,
            events: Arc::new(store.clone()),
            conversations: Arc::new(store.clone()),
            messages: Arc::new(store.clone()),
            executions: Arc::new(store.clone()),
            turn_results: Arc::new(store.clone()),
            failures: Arc::new(store.clone()),
            past_calls: Arc::new(store.clone()),
            usage: Arc::new(store.clone()),
            outside: Arc::new(store.clone()),
            left_out: Arc::new(store.clone()),
            results: Arc::new(store.clone()),
            blobs: BlobFiles::new(Arc::new(store.clone()), None, BlobRules::default()),
            keys: Arc::new(store.clone()),
            owners: Arc::new(store.clone()),
            audit: Arc::new(store.clone()),
            tenants: Arc::new(store.clone()),
            stream: Arc::new(stream.clone()),
            cancels: Arc::new(stream.clone()),
            turns: Arc::new(RecordingTurns::default()),
        };
        let (address, ..) = listen(GatewayState::new(ports, GatewayConfig::default())).await;
        Self {
            store,
            stream,
            address,
        }
    }

    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        client().request(
            method.parse().unwrap(),
            format!("http://{}/api/v1/agent{path}", self.address),
        )
    }

    async fn get(&self, path: &str) -> Value {
        let answer = Answer::of(self.request("GET", path).send().await.unwrap()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request("POST", path).json(body).send().await.unwrap()).await
    }

    async fn accept(&self, conversation_id: &str, content: &str, client_id: &str) -> Answer {
        let body = json!({"content": content, "message_id": client_id});
        self.post(&format!("/conversations/{conversation_id}/messages"), &body)
            .await
    }

    /// Runs the turn of a queued message as a worker does.
    async fn run_turn(&self, conversation_id: &str, message_id: &str, answer: &[&str]) {
        let agent_execution_id = ids::root_agent_execution_id(conversation_id, message_id);
        let begin = BeginTurn {
            conversation_id: conversation_id.to_owned(),
            tenant_id: "default".to_owned(),
            message_id: message_id.to_owned(),
            content: None,
            agent_execution_id: agent_execution_id.clone(),
            agent: AgentDefinition::only_a_name("default".to_owned()),
            on_unknown_agent: OnUnknownAgent::Begin,
            epoch: Some(0),
            tenant_budget: everturn_store::DayBudget::default(),
        };
        let TurnStart::Begun(begun) = self.store.begin_turn(begin).await.unwrap() else {
            panic!("another turn runs")
        };
        self.announce(&begun.log_id, begun.last_sequence, Vec::new())
            .await;
        let (conversation_id, message_id) = (conversation_id.to_owned(), message_id.to_owned());
        let step = StepKey {
            conversation_id,
            message_id,
            agent_execution_id,
            step: 0,
            epoch: Some(begun.epoch),
        };
        let StepClaim::Call(ClaimedCall {
            log_id, generation, ..
        }) = self.store.claim_step(&step, None).await.unwrap()
        else {
            panic!("paid before")
        };
        let writer = TextWriter::new(
            Arc::new(self.stream.clone()),
            log_id,
            &step.message_id,
            &step.agent_execution_id,
            0,
            generation,
        );
        for piece in answer {
            writer.push(Part::Text, piece);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let text = writer.text_so_far(Part::Text);
        writer.finish().await;
        let state = LlmCompleteState {
            text,
            finish: FinishReason::Stop.into(),
            generation,
            ..LlmCompleteState::default()
        };
        self.store.complete_step(&step, state).await.unwrap();
        let end = SaveEnd {
            status: AgentExecutionStatus::Completed.into(),
            ..SaveEnd::default()
        };
        let request = SaveRequest {
            conversation_id: step.conversation_id.clone(),
            message_id: step.message_id,
            agent_execution_id: step.agent_execution_id,
            step: 0,
            epoch: step.epoch,
            batch: Some(Batch::End(end)),
        };
        let saved = self.store.save(&request).await.unwrap();
        self.announce(&saved.log_id, saved.result.last_sequence, saved.sealed)
            .await;
    }

    async fn announce(&self, log_id: &LogId, last_sequence: u32, sealed: Vec<SealedStep>) {
        self.stream
            .announce(
                log_id,
                Announcement {
                    last_sequence,
                    sealed,
                },
            )
            .await
            .unwrap();
    }
}

/// Reads to the end of a turn; returns the text assembled from frames and the types of the events.
async fn watch(stream: &mut Sse) -> (String, Vec<String>) {
    let (mut text, mut types) = (String::new(), Vec::new());
    loop {
        let frame = stream.next().await.expect("the stream ended");
        let data: Value = serde_json::from_str(&frame.data).unwrap();
        match frame.event.as_str() {
            "text_start" => data["text"].as_str().unwrap().clone_into(&mut text),
            "text_delta" => {
                assert_eq!(data["offset"].as_u64(), Some(text.len() as u64));
                text.push_str(data["text"].as_str().unwrap());
            }
            "text_end" | "conversation" | "replay" => {}
            event => {
                types.push(event.to_owned());
                if event == "complete" {
                    return (text, types);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_seen_by_all_and_told_the_same_afterwards() {
    let stack = Stack::start().await;
    assert_eq!(
        stack
            .post("/conversations", &json!({"id": "c"}))
            .await
            .status,
        201
    );
    let accepted = stack.accept("c", "hi", "mine").await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    let message_id = accepted.json()["message_id"].as_str().unwrap().to_owned();
    let status = stack.get("/conversations/c/execution-status").await;
    assert_eq!(
        status,
        json!({"is_running": true, "last_sequence": 0, "current_message_id": message_id, "model": null, "waiting": null})
    );

    let mut watchers = Vec::new();
    for _ in 0..3 {
        let mut stream = Sse::of(
            stack
                .request("GET", "/conversations/c/events/stream")
                .send()
                .await
                .unwrap(),
        );
        watchers.push(tokio::spawn(async move { watch(&mut stream).await }));
    }
    let answer = ["The ", "answer ", "ist ", "süß."].repeat(20);
    stack.run_turn("c", &message_id, &answer).await;
    for watcher in watchers {
        let (text, types) = watcher.await.unwrap();
        assert_eq!(types, ["user_message", "assistant_message", "complete"]);
        assert_eq!(text, answer.concat());
    }
    let again = stack.accept("c", "hi", "mine").await.json();
    assert_eq!(
        (&again["message_id"], &again["status"]),
        (&json!(message_id), &json!("accepted_before"))
    );
    let timeline = stack.get("/conversations/c/messages").await;
    assert_eq!(
        (&timeline["total"], &timeline["timeline"][0]["id"]),
        (&json!(2), &json!(message_id))
    );
    assert_eq!(timeline["timeline"][1]["content"], answer.concat());
    let conversation = stack.get("/conversations/c").await;
    assert_eq!(
        (
            &conversation["last_sequence"],
            &conversation["message_count"]
        ),
        (&json!(3), &json!(2))
    );
    let page = stack
        .get("/conversations/c/events?from_sequence=2&limit=1")
        .await;
    assert_eq!(
        (&page["events"][0]["event_type"], &page["has_more"]),
        (&json!("assistant_message"), &json!(true))
    );
    let status = stack.get("/conversations/c/execution-status").await;
    assert_eq!(
        status,
        json!({"is_running": false, "last_sequence": 3, "current_message_id": null, "model": null, "waiting": null})
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chat_gives_the_whole_turn() {
    let stack = Stack::start().await;
    let response = stack
        .request("POST", "/chat")
        .json(&json!({"message": "hi"}))
        .send()
        .await
        .unwrap();
    let conversation_id = response.headers()["x-conversation-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let mut chat = Sse::of(response);
    let status = stack
        .get(&format!(
            "/conversations/{conversation_id}/execution-status"
        ))
        .await;
    stack
        .run_turn(
            &conversation_id,
            status["current_message_id"].as_str().unwrap(),
            &["He", "llo"],
        )
        .await;
    let (text, types) = watch(&mut chat).await;
    assert_eq!((text.as_str(), types.len()), ("Hello", 3));
    assert_eq!(chat.next().await.unwrap().event, "end");
    assert!(chat.next().await.is_none());
}

#[tokio::test]
async fn lists_are_paged_in_the_order_of_the_store() {
    let stack = Stack::start().await;
    for number in 0..5 {
        stack
            .post("/conversations", &json!({"id": format!("c{number}")}))
            .await;
    }
    let (mut seen, mut path) = (Vec::new(), "/conversations?limit=2".to_owned());
    loop {
        let page = stack.get(&path).await;
        seen.extend(
            page["conversations"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next_before"].as_str() else {
            break;
        };
        path = format!("/conversations?limit=2&before={next}");
    }
    seen.sort();
    assert_eq!(seen, ["c0", "c1", "c2", "c3", "c4"]);
}
