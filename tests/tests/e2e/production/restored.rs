//! A database that is restored from a copy which is older than what readers have seen (invariant 8, a cursor never
//! expires).

use everturn_client::Frame;
use everturn_proto::words::EventType;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::production::faults::persisted;

/// Calls three tools one after the other, then answers.
fn busy(request: &Request) -> Reply {
    match request.results_since_user() {
        0..3 => Reply::text("One more.").call("test_read", &json!({})),
        _ => Reply::text("Done."),
    }
}

/// What a reader has who stays, and comes back by itself: its events, and where it had to begin anew.
#[derive(Default)]
pub(crate) struct Screen {
    pub(crate) events: Vec<(u32, Value)>,
    resets: Vec<u64>,
}

impl Screen {
    pub(crate) fn take(&mut self, frame: &Frame) {
        if frame.event == "reset" {
            let from = frame.data["from_sequence"].as_u64().unwrap();
            self.events.retain(|(number, _)| u64::from(*number) < from);
            self.resets.push(from);
        } else if let Some(number) = frame.id {
            assert_eq!(number as usize, self.events.len() + 1, "no gap, no repeat");
            self.events.push((number, frame.data.clone()));
        }
    }
}

#[tokio::test]
async fn a_reader_of_what_was_lost_begins_anew_where_the_logs_part() {
    let stack = Stack::breakable(Model::start(busy).await).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_holding(&[]);
    let conversation = stack.ask_held("tool.during", "work").await;
    stack.held(&conversation, 1).await;
    let before = stack.events(&conversation).await.len();
    stack.postgres().back_up().await;
    stack.let_go(&conversation);

    let client = stack.client();
    let mut frames = std::pin::pin!(client.follow(&conversation, 0));
    let mut screen = Screen::default();
    while screen.events.len() < before + 3 {
        screen.take(&frames.next().await.unwrap());
    }
    // Nobody writes while the database is replaced.
    worker.kill().await;
    stack.postgres().restore().await;
    let _worker = stack.worker();
    let is_end = |(_, data): &(u32, Value)| {
        EventType::from(data["type"].as_str().unwrap_or_default()).ends_agent_execution()
    };
    while screen.resets.is_empty() || !screen.events.last().is_some_and(is_end) {
        screen.take(&frames.next().await.unwrap());
    }
    assert_eq!(screen.resets, [before as u64 + 1]);
    wait::until("a new reader sees the end", || async {
        let types = stack.event_types(&conversation).await;
        (types.len() == screen.events.len()).then_some(())
    })
    .await;
    let last = screen.events.last().unwrap().0;
    let anew = stack.frames_until(&conversation, 0, |frame| frame.id == Some(last));
    assert_eq!(screen.events, persisted(&anew.await));
}

/// A server that is at its recovery, or a replica that is behind, answers with what was there some time ago. Nobody may
/// believe it: readers would be told that their conversation was deleted, and would not come back.
#[tokio::test]
async fn a_server_that_is_behind_is_not_believed() {
    let stack = Stack::breakable(Model::start(busy).await).await;
    stack.postgres().back_up().await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("work").await;
    stack.ended(&conversation, 1).await;
    let client = stack.client();
    let mut frames = std::pin::pin!(client.follow(&conversation, 0));
    let mut screen = Screen::default();
    while screen.events.len() < stack.events(&conversation).await.len() {
        screen.take(&frames.next().await.unwrap());
    }

    stack.postgres().fall_behind().await;
    for path in ["", "/events", "/execution-status"] {
        let path = format!("/conversations/{conversation}{path}");
        let problem = stack.get(&path).await;
        assert_eq!(problem["code"], "store_unavailable", "{path}: {problem}");
    }
    stack.postgres().catch_up().await;

    wait::until("the next message is accepted", || async {
        let more = json!({"content": "more"});
        let (status, _) = stack.send(&conversation, &more).await;
        (status == 202).then_some(())
    })
    .await;
    let events = stack.ended(&conversation, 2).await;
    while screen.events.len() < events.len() {
        let frame = frames.next().await;
        screen.take(&frame.expect("the reader may come back"));
    }
    assert!(screen.resets.is_empty(), "nothing was lost");
}
