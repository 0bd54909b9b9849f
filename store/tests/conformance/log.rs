//! The event log: its order (invariant 2, one order), pages, status.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{Access, ConversationHead, EventLog, EventReader, PageLimit};

use super::{
    Backend,
    fixture::{Turn, TurnStore, tenant},
};

const WRITERS: u32 = 64;

/// Reads as a follower does until told to stop. Fails on a gap, or on a number that appears after a larger one.
async fn follow(store: impl EventReader, log: EventLog, stop: Arc<AtomicBool>) -> u32 {
    let mut seen = 0;
    loop {
        let stopping = stop.load(Ordering::Acquire);
        let page = store
            .events(&tenant(), &log, seen + 1, PageLimit::rows(7))
            .await
            .unwrap();
        for event in &page.events {
            assert_eq!(
                event.sequence_number,
                seen + 1,
                "a follower sees every number, in order"
            );
            seen += 1;
        }
        if stopping && page.events.is_empty() {
            return seen;
        }
        tokio::task::yield_now().await;
    }
}

async fn write_and_follow<S>(turn: &Turn<S>, handles: Vec<S>, reader: S)
where
    S: TurnStore + Clone + 'static,
{
    let stop = Arc::new(AtomicBool::new(false));
    let log = turn.conversation().await.log();
    let follower = tokio::spawn(follow(reader, log, stop.clone()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let mut turn = turn.clone();
            turn.store = handles[number as usize % handles.len()].clone();
            tokio::spawn(async move { turn.steer(&format!("steer_{number}"), "hurry").await })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    stop.store(true, Ordering::Release);
    assert_eq!(follower.await.unwrap(), WRITERS + 1);
    assert_eq!(turn.events().await.len(), WRITERS as usize + 1);
    let conversation = turn.conversation().await;
    assert_eq!(
        (conversation.last_sequence, conversation.message_count),
        (WRITERS + 1, WRITERS + 1)
    );
}

pub async fn sequence_has_no_gap_under_64_writers(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    write_and_follow(&turn, vec![turn.store.clone()], turn.store.clone()).await;
}

pub async fn two_handles_write_at_once(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let handles = vec![turn.store.clone(), backend.open().await];
    write_and_follow(&turn, handles, backend.open().await).await;
}

pub async fn pages_say_exactly_whether_there_is_more(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.steer("s1", "a").await;
    turn.steer("s2", "b").await;
    let log = turn.conversation().await.log();
    let cases = [
        // Each case is (from, limit, numbers, more).
        (0, 3, vec![1, 2, 3], false),
        (1, 3, vec![1, 2, 3], false),
        (1, 2, vec![1, 2], true),
        (2, 2, vec![2, 3], false),
        (3, 1, vec![3], false),
        (4, 1, vec![], false),
        (3, 0, vec![], true),
        (4, 0, vec![], false),
        (0, u32::MAX, vec![1, 2, 3], false),
        (u32::MAX, u32::MAX, vec![], false),
    ];
    for (from, limit, numbers, more) in cases {
        let page = turn
            .store
            .events(&tenant(), &log, from, PageLimit::rows(limit))
            .await;
        let page = page.unwrap();
        let read: Vec<_> = page
            .events
            .iter()
            .map(|event| event.sequence_number)
            .collect();
        assert_eq!(
            (read, page.has_more),
            (numbers, more),
            "from {from} limit {limit}"
        );
    }
    let unknown = EventLog {
        conversation_id: "unknown".into(),
        ..log
    };
    let unknown = turn
        .store
        .events(&tenant(), &unknown, 0, PageLimit::rows(10))
        .await;
    let unknown = unknown.unwrap();
    assert_eq!((unknown.events.len(), unknown.has_more), (0, false));
}

pub async fn pages_are_read_backwards(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    for number in 0..4 {
        let content = "x".repeat(100_000);
        turn.steer(&format!("s{number}"), &content).await;
    }
    let log = turn.conversation().await.log();
    let cases = [
        // Each case is (before, rows, bytes, numbers, more).
        (u32::MAX, 9, u32::MAX, vec![1, 2, 3, 4, 5], false),
        (6, 5, u32::MAX, vec![1, 2, 3, 4, 5], false),
        (6, 2, u32::MAX, vec![4, 5], true),
        (4, 2, u32::MAX, vec![2, 3], true),
        (2, 2, u32::MAX, vec![1], false),
        (1, 2, u32::MAX, vec![], false),
        (0, 2, u32::MAX, vec![], false),
        (6, 9, 250_000, vec![4, 5], true),
        (6, 9, 1, vec![5], true),
        (3, 9, 250_000, vec![1, 2], false),
    ];
    for (before, rows, bytes, numbers, more) in cases {
        let limit = PageLimit { rows, bytes };
        let access = tenant();
        let page = turn.store.events_before(&access, &log, before, limit);
        let page = page.await.unwrap();
        let read = page.events.iter().map(|event| event.sequence_number);
        assert_eq!(
            (read.collect::<Vec<_>>(), page.has_more),
            (numbers, more),
            "before {before} rows {rows} bytes {bytes}"
        );
        assert!(page.generations.is_empty());
    }
}

pub async fn a_page_of_large_events_ends_at_its_bytes(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    for number in 0..5 {
        turn.steer(&format!("s{number}"), &"x".repeat(100_000))
            .await;
    }
    let log = turn.conversation().await.log();
    let numbers = async |from, bytes| {
        let limit = PageLimit { rows: 100, bytes };
        let page = turn.store.events(&tenant(), &log, from, limit).await;
        let page = page.unwrap();
        let numbers = page.events.iter().map(|event| event.sequence_number);
        (numbers.collect::<Vec<_>>(), page.has_more)
    };
    assert_eq!(numbers(0, 250_000).await, (vec![1, 2, 3], true));
    assert_eq!(numbers(4, 250_000).await, (vec![4, 5], true));
    let alone = numbers(2, 1).await;
    assert_eq!(alone, (vec![2], true), "one event always comes");
    assert_eq!(numbers(6, 1).await, (vec![6], false));
    assert_eq!(numbers(0, 1_000_000).await, (vec![1, 2, 3, 4, 5, 6], false));
}

pub async fn status_of_an_unknown_conversation_is_none(backend: &impl Backend) {
    let store = backend.open().await;
    assert_eq!(store.conversation_head(&tenant(), "c").await.unwrap(), None);

    let turn = Turn::begun(store, "c", "m").await;
    let log_id = turn.conversation().await.log_id;
    let status = |message: Option<&str>, last_sequence| {
        let current_message_id = message.map(Into::into);
        Some(ConversationHead {
            log_id: log_id.clone(),
            is_running: message.is_some(),
            last_sequence,
            current_message_id,
            model: None,
        })
    };
    assert_eq!(
        turn.store.conversation_head(&tenant(), "c").await.unwrap(),
        status(Some("m"), 1)
    );
    turn.queue("queued").await;
    assert_eq!(
        turn.store.conversation_head(&tenant(), "c").await.unwrap(),
        status(Some("m"), 1),
        "the running one first"
    );
    turn.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(
        turn.store.conversation_head(&tenant(), "c").await.unwrap(),
        status(Some("queued"), 2),
        "queued is running"
    );
    let next = Turn::begun(turn.store.clone(), "c", "queued").await;
    next.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(
        turn.store.conversation_head(&tenant(), "c").await.unwrap(),
        status(None, 4)
    );
}

pub async fn last_sequences_of_many_conversations(backend: &impl Backend) {
    let store = backend.open().await;
    let turn = Turn::begun(store.clone(), "c1", "m").await;
    turn.steer("s", "x").await;
    for id in ["c2", "a.b", "a:b"] {
        Turn::begun(store.clone(), id, "m").await;
    }
    // Some of the ids would break a list that is written as text.
    let asked = [
        "unknown",
        "c1",
        "it's",
        "a.b",
        "a,b",
        "\"q\"",
        "{}",
        "\u{1f600}",
        "a:b",
        "c1",
    ]
    .map(str::to_owned);
    let mut found = store.last_sequences(&asked).await.unwrap();
    found.sort_unstable_by(|one, two| one.0.conversation_id.cmp(&two.0.conversation_id));
    let found = found
        .into_iter()
        .map(|(log, last)| (log.conversation_id, last));
    let expected = [("a.b", 1), ("a:b", 1), ("c1", 2)];
    let expected = expected.map(|(id, last)| (id.to_owned(), last));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(store.last_sequences(&[]).await.unwrap(), []);
    let many: Vec<_> = (0..2000).map(|number| format!("c{number}")).collect();
    assert_eq!(store.last_sequences(&many).await.unwrap().len(), 2);
}

pub async fn a_log_says_where_it_parts_from_another_one(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "look", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    let log = turn.conversation().await.log();
    let saved: DateTime<Utc> = turn.events().await[1].created_at.parse().unwrap();
    // The last two were saved again, after the database had lost them.
    backend
        .run("UPDATE agent_execution_events SET created_at = '2100-01-01T00:00:00+00:00' WHERE sequence_number > 2")
        .await;
    let store = &turn.store;
    let saved_by = saved + TimeDelta::seconds(5);
    for (before, common) in [(1, 0), (2, 1), (3, 2), (4, 2), (99, 2)] {
        let found = store.last_common(&tenant(), &log, before, saved_by).await;
        assert_eq!(found.unwrap(), common, "before {before}");
    }
    let earlier = saved - TimeDelta::days(1);
    let found = store.last_common(&tenant(), &log, 99, earlier).await;
    assert_eq!(found.unwrap(), 0, "all of it is younger");
    let another = EventLog {
        id: "another".into(),
        ..log.clone()
    };
    let stranger = Access::tenant("stranger");
    for (access, log) in [(&stranger, &log), (&tenant(), &another)] {
        let found = store.last_common(access, log, 99, saved_by).await;
        assert_eq!(found.unwrap(), 0, "it is not theirs to see");
    }
}
