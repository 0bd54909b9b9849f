//! The stream of the list of conversations: workers and another gateway change the list, the reader's gateway is killed, and
//! what the reader has in the end is what is listed.

use std::collections::{BTreeMap, VecDeque};

use everturn_tests::{
    model::Model,
    reader::frames::{FrameReader, SseFrame},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

use crate::embedded::approvals::{ASKING, answer, one_call, pending};

/// A client that follows the list, as docs/api/conversations.md says.
struct Follower {
    response: reqwest::Response,
    reader: FrameReader,
    frames: VecDeque<SseFrame>,
    rows: BTreeMap<String, Value>,
}

impl Follower {
    /// Connects to a gateway, which may be about to start.
    async fn connect(gateway: &str) -> Self {
        let url = format!("{gateway}/api/v1/agent/conversation-list/stream");
        let response = wait::until("the list is streamed", || async {
            reqwest::get(&url).await.ok()
        });
        let mut follower = Self {
            response: response.await,
            reader: FrameReader::default(),
            frames: VecDeque::new(),
            rows: BTreeMap::new(),
        };
        assert_eq!(follower.take().await.as_deref(), Some("list"));
        follower
    }

    /// Takes the next frame. Returns its name; `None` when the connection has ended.
    async fn take(&mut self) -> Option<String> {
        while self.frames.is_empty() {
            let chunk = self.response.chunk().await.ok()??;
            self.frames.extend(self.reader.push(&chunk).unwrap());
        }
        let SseFrame { event, data, .. } = self.frames.pop_front()?;
        match event.as_str() {
            "list" => {
                self.rows.clear();
                for row in data["conversations"].as_array().unwrap() {
                    self.put(row);
                }
            }
            "conversation_changed" => self.put(&data["conversation"]),
            "conversation_removed" => {
                self.rows.remove(data["conversation_id"].as_str().unwrap());
            }
            other => assert_eq!(other, "reconnect"),
        }
        Some(event)
    }

    fn put(&mut self, row: &Value) {
        let id = row["id"].as_str().unwrap().to_owned();
        self.rows.insert(id, row.clone());
    }

    /// Follows until the conversation is shown in this state.
    async fn sees(&mut self, conversation: &str, state: &str) {
        let is_so = |rows: &BTreeMap<String, Value>| {
            let row = rows.get(conversation);
            row.is_some_and(|row| row["state"] == state)
        };
        while !is_so(&self.rows) {
            self.take().await.unwrap();
        }
    }
}

async fn delete(stack: &Stack, conversation: &str) {
    let gateway = stack.gateway_url(0);
    let url = format!("{gateway}/api/v1/agent/conversations/{conversation}");
    let deleted = stack.http.delete(url).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
}

#[tokio::test]
async fn a_list_is_followed_at_another_gateway() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let stack = stack.with_gateways(2);
    stack.configure_gateway("poll_interval = \"100ms\"\n");
    let _worker = stack.worker();
    let _gateway = stack.gateway_on(0, &[]).await;
    let other = stack.gateway_on(1, &[]).await;
    let mut follower = Follower::connect(&stack.gateway_url(1)).await;
    assert!(follower.rows.is_empty());

    let (conversation, _) = stack.ask("do it").await;
    follower.sees(&conversation, "waiting_for_approval").await;
    assert_eq!(follower.rows[&conversation]["waiting_approvals"], 1);
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let yes = json!({"decision": "approve"});
    assert_eq!(answer(&stack, &conversation, &call, yes).await.0, 200);
    follower.sees(&conversation, "idle").await;

    // A gateway that is killed takes nothing with it.
    other.kill().await;
    while follower.take().await.is_some() {}
    let _other = stack.gateway_on(1, &[]).await;
    let (next, _) = stack.ask("do it again").await;
    let mut follower = Follower::connect(&stack.gateway_url(1)).await;
    follower.sees(&next, "waiting_for_approval").await;
    delete(&stack, &conversation).await;
    while follower.rows.contains_key(&conversation) {
        follower.take().await.unwrap();
    }
    let listed = stack.get("/conversations").await;
    let rows: Vec<_> = follower.rows.values().collect();
    assert_eq!(json!(rows), listed["conversations"]);
}
