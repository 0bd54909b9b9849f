//! The stream of a list of conversations.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use everturn_gateway::{
    GatewayConfig,
    live::lists::{ListHub, ListReader},
};
use everturn_store::{Access, StoreError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::data;
use crate::support::{Sse, TestGateway, rows::waiting, store::TestStore, until};

const STREAM: &str = "/conversation-list/stream";

/// A gateway that finds out quickly what it was not told.
async fn gateway() -> TestGateway {
    TestGateway::with(GatewayConfig {
        poll_interval: Duration::from_millis(20),
        ..GatewayConfig::default()
    })
    .await
}

async fn open(gateway: &TestGateway) -> Sse {
    Sse::of(gateway.request("GET", STREAM).send().await.unwrap())
}

/// What a client has that does what docs/api/conversations.md says.
#[derive(Default)]
struct View(BTreeMap<String, Value>);

impl View {
    /// Takes the next frame. Returns its name.
    async fn take(&mut self, stream: &mut Sse) -> String {
        let frame = stream.next().await.unwrap();
        let data = data(&frame);
        assert_eq!(data["type"], frame.event);
        match frame.event.as_str() {
            "list" => {
                self.0 = by_id(data["conversations"].as_array().unwrap());
            }
            "conversation_changed" => {
                self.0.extend(by_id(&[data["conversation"].clone()]));
            }
            "conversation_removed" => {
                self.0.remove(data["conversation_id"].as_str().unwrap());
            }
            other => panic!("{other}"),
        }
        frame.event
    }

    /// Takes frames until the view is what the gateway lists.
    async fn agrees(&mut self, stream: &mut Sse, gateway: &TestGateway) {
        loop {
            let listed = gateway.get("/conversations").await.json();
            let rows = listed["conversations"].as_array().unwrap();
            if self.0 == by_id(rows) {
                return;
            }
            self.take(stream).await;
        }
    }
}

fn by_id(rows: &[Value]) -> BTreeMap<String, Value> {
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    rows.iter().map(|row| (id(row), row.clone())).collect()
}

#[tokio::test]
async fn a_list_is_followed() {
    let gateway = gateway().await;
    gateway.store.add("theirs", "other tenant");
    gateway.store.add("a", "default");
    let mut stream = open(&gateway).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let mut view = View::default();
    assert_eq!(view.take(&mut stream).await, "list");
    assert_eq!(view.0.keys().collect::<Vec<_>>(), ["a"]);

    // What this gateway does itself.
    gateway.post("/conversations", &json!({"id": "b"})).await;
    assert_eq!(view.take(&mut stream).await, "conversation_changed");
    assert!(view.0.contains_key("b"));
    gateway
        .request("PATCH", "/conversations/a")
        .json(&json!({"title": "Sums"}))
        .send()
        .await
        .unwrap();
    view.agrees(&mut stream, &gateway).await;
    assert_eq!(view.0["a"]["title"], "Sums");
    // What others do.
    gateway.store.call("b", &waiting("exec_1"));
    view.agrees(&mut stream, &gateway).await;
    assert_eq!(view.0["b"]["state"], "waiting_for_approval");
    gateway.store.remove("a");
    gateway.store.add("c", "default");
    view.agrees(&mut stream, &gateway).await;
    assert_eq!(view.0.keys().collect::<Vec<_>>(), ["b", "c"]);
}

/// Calls of the store that have failed.
static FAILED: AtomicUsize = AtomicUsize::new(0);

fn away() -> StoreError {
    FAILED.fetch_add(1, Ordering::Relaxed);
    StoreError::Unavailable("away".into())
}

/// Takes the store away until several calls have failed.
async fn store_was_away(gateway: &TestGateway) {
    let before = FAILED.load(Ordering::Relaxed);
    gateway.store.lock().broken = Some(away);
    until(async || FAILED.load(Ordering::Relaxed) > before + 3).await;
    gateway.store.lock().broken = None;
}

#[tokio::test]
async fn a_list_goes_on_when_the_store_is_back() {
    let gateway = gateway().await;
    gateway.store.add("a", "default");
    gateway.store.lock().broken = Some(away);
    let mut stream = open(&gateway).await;
    store_was_away(&gateway).await;
    let mut view = View::default();
    view.agrees(&mut stream, &gateway).await;
    gateway.store.add("b", "default");
    store_was_away(&gateway).await;
    view.agrees(&mut stream, &gateway).await;
    assert_eq!(view.0.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_only_when_it_may_have_changed() {
    let (store, access) = (TestStore::default(), Access::tenant("t"));
    store.add("a", "t");
    let hub = ListHub::new(Arc::new(store.clone()), Duration::from_secs(1));
    let mut readers = [hub.open(&access), hub.open(&access)];
    for reader in &mut readers {
        assert!(reader.next().await.unwrap().starts_with("event: list\n"));
    }
    sleep(Duration::from_secs(5)).await;
    assert_eq!(store.lock().list_reads, 1, "readers share it");

    // The query for all lists finds a change by others: a new conversation, and one that is gone.
    for (reads, event) in [(2, "conversation_changed"), (3, "conversation_removed")] {
        let begun = Instant::now();
        if reads == 2 {
            store.add("b", "t");
        } else {
            store.remove("t~a");
        }
        for reader in &mut readers {
            let frames = reader.next().await.unwrap();
            assert!(frames.starts_with(&format!("event: {event}\n")), "{frames}");
        }
        assert!(begun.elapsed() <= Duration::from_millis(1200));
        assert_eq!(store.lock().list_reads, reads);
    }

    drop(readers);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(hub.tails(), 0);
    let reads = store.lock().list_reads;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(store.lock().list_reads, reads, "nobody reads it");
    assert!(hub.open(&access).next().await.is_some());
}

/// Opens the lists of owners, and takes the first frames.
async fn lists_of(hub: &ListHub, owners: &[&str]) -> Vec<ListReader> {
    let mut readers = Vec::new();
    for owner in owners {
        let mut reader = hub.open(&Access::owner("t", *owner));
        assert!(reader.next().await.is_some());
        readers.push(reader);
    }
    readers
}

#[tokio::test(start_paused = true)]
async fn idle_lists_cost_one_look_together() {
    let store = TestStore::default();
    let hub = ListHub::new(Arc::new(store.clone()), Duration::from_secs(1));
    let _readers = lists_of(&hub, &["ann", "bob", "cid"]).await;
    sleep(Duration::from_secs(2)).await;
    store.lock().list_looks.clear();
    let reads = store.lock().list_reads;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(store.lock().list_reads, reads, "no list has changed");
    let looks = store.lock().list_looks.clone();
    assert!((599..=601).contains(&looks.len()), "{}", looks.len());
    assert!(looks.iter().all(|lists| *lists == 3), "{looks:?}");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_one_owner_reads_no_list_of_another_owner() {
    let store = TestStore::default();
    let hub = ListHub::new(Arc::new(store.clone()), Duration::from_secs(1));
    let mut readers = lists_of(&hub, &["ann", "bob"]).await;
    let reads = store.lock().list_reads;
    store.add_of("c", Access::owner("t", "ann"));
    let frames = readers[0].next().await.unwrap();
    assert!(
        frames.starts_with("event: conversation_changed\n"),
        "{frames}"
    );
    sleep(Duration::from_mins(1)).await;
    assert_eq!(store.lock().list_reads, reads + 1, "the list of Ann");
}

#[tokio::test]
async fn what_a_gateway_changes_itself_is_told_at_once() {
    let gateway = TestGateway::with(GatewayConfig {
        poll_interval: Duration::from_hours(1),
        ..GatewayConfig::default()
    })
    .await;
    let mut stream = open(&gateway).await;
    let mut view = View::default();
    assert_eq!(view.take(&mut stream).await, "list");
    let change = async |method: &str, path: &str, body: Value| {
        let request = gateway.request(method, path).json(&body);
        assert!(request.send().await.unwrap().status().is_success());
    };
    change("POST", "/conversations", json!({"id": "a"})).await;
    assert_eq!(view.take(&mut stream).await, "conversation_changed");
    change("PATCH", "/conversations/a", json!({"title": "Sums"})).await;
    assert_eq!(view.take(&mut stream).await, "conversation_changed");
    assert_eq!(view.0["a"]["title"], "Sums");
    let message = json!({"content": "hi"});
    change("POST", "/conversations/a/messages", message).await;
    assert_eq!(view.take(&mut stream).await, "conversation_changed");
    assert_eq!(view.0["a"]["state"], "queued");
    change("DELETE", "/conversations/a", json!({})).await;
    assert_eq!(view.take(&mut stream).await, "conversation_removed");
}
