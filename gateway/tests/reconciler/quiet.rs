//! Quiet turns, whose workflows run: what they cost, and what is found among them.

use std::{
    collections::BTreeSet,
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_gateway::config::ReconcilerConfig;
use everturn_proto::words::OnBusy;
use everturn_store::{
    CheckNote, CheckPace, Conversation, DueBatch, DueCheck, DueHooks, Reconciliation, Result,
    TurnFailure, Unfinished, sqlite::SqliteStore,
};

use super::{World, quick};
use crate::support::until;

/// A store that counts the calls of reconcilers.
pub(super) struct CountingStore {
    store: SqliteStore,
    calls: Mutex<Vec<&'static str>>,
}

impl CountingStore {
    pub(super) fn of(world: &World) -> Self {
        Self {
            store: world.store.clone(),
            calls: Mutex::default(),
        }
    }

    fn count(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
    }

    pub(super) fn counted(&self, name: &str) -> usize {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| **call == name).count()
    }
}

#[async_trait]
impl Reconciliation for CountingStore {
    async fn begin_look(&self, pace: &CheckPace) -> Result<bool> {
        self.count("begin_look");
        self.store.begin_look(pace).await
    }

    async fn due_checks(&self, pace: &CheckPace) -> Result<DueBatch> {
        self.count("due_checks");
        self.store.due_checks(pace).await
    }

    async fn unfinished(&self, conversation_id: &str) -> Result<Option<Unfinished>> {
        self.count("unfinished");
        self.store.unfinished(conversation_id).await
    }

    async fn put_back_checks(&self, rest: &[DueCheck]) -> Result<()> {
        self.count("put_back_checks");
        self.store.put_back_checks(rest).await
    }

    async fn note_check(&self, conversation_id: &str, note: &CheckNote) -> Result<()> {
        self.count("note_check");
        self.store.note_check(conversation_id, note).await
    }

    async fn due_hooks(&self, due_before: DateTime<Utc>, limit: u32) -> Result<Vec<DueHooks>> {
        self.count("due_hooks");
        self.store.due_hooks(due_before, limit).await
    }

    async fn note_hooks(
        &self,
        agent_execution_id: &str,
        due_at: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        self.count("note_hooks");
        self.store.note_hooks(agent_execution_id, due_at).await
    }

    async fn fail_turn(
        &self,
        conversation: &Conversation,
        message_id: &str,
        failure: TurnFailure,
    ) -> Result<bool> {
        self.count("fail_turn");
        let failed = self.store.fail_turn(conversation, message_id, failure);
        failed.await
    }
}

impl World {
    /// Begins a turn in so many conversations, `c0` and so on. No worker works for the turns.
    async fn quiet_turns(&self, turns: usize) {
        for number in 0..turns {
            let id = format!("c{number}");
            self.create(&id).await;
            self.store_message(&id, "m", OnBusy::Queue).await;
            self.begin(&id, "m").await;
        }
    }

    /// The conversations that the engine's list was asked for, and the number of lists.
    fn listed(&self) -> (BTreeSet<String>, usize) {
        let lists = self.asks_with("list");
        let ids = lists.iter().flat_map(|list| list.split(' ').skip(1));
        (ids.map(str::to_owned).collect(), lists.len())
    }
}

/// A configuration under which a conversation is checked once.
fn once() -> ReconcilerConfig {
    ReconcilerConfig {
        again: Duration::from_hours(1),
        ..quick()
    }
}

#[tokio::test]
async fn a_thousand_quiet_turns_cost_a_few_calls() {
    const TURNS: usize = 1000;
    let world = World::new().await;
    world.quiet_turns(TURNS).await;
    let store = Arc::new(CountingStore::of(&world));
    let running = world.reconciler_on(store.clone(), once());
    until(async || running.counts.numbers().checked >= TURNS as u64).await;
    let (listed, lists) = world.listed();
    assert_eq!(listed.len(), TURNS);
    // The last turns have just begun, and may be quiet for long enough only at a later look.
    assert!(lists <= 4, "{lists} lists");
    assert_eq!(
        world.asks_with("look"),
        [""; 0],
        "no turn is asked for alone"
    );
    assert_eq!(world.asks_with("start"), [""; 0]);
    // Two calls for each look, and one more after a full batch.
    let looks = store.counted("begin_look");
    assert!(store.counted("due_checks") <= looks + 1);
    for call in [
        "unfinished",
        "note_check",
        "put_back_checks",
        "note_hooks",
        "fail_turn",
    ] {
        assert_eq!(store.counted(call), 0, "{call}");
    }
}

#[tokio::test]
async fn quiet_turns_of_several_lists_are_told_in_one_look() {
    let world = World::new().await;
    world.quiet_turns(35).await;
    let config = ReconcilerConfig {
        list_size: NonZeroU32::new(10).unwrap(),
        every: Duration::from_secs(4),
        grace: Duration::from_millis(10),
        ..once()
    };
    let running = world.reconciler(config);
    until(async || running.counts.numbers().checked >= 35).await;
    let lists = world.asks_with("list");
    let is_short = |list: &String| list.split(' ').skip(1).count() <= 10;
    assert!(lists.iter().all(is_short), "{lists:?}");
    // The turns that had just begun are in the lists of the second look.
    assert!(lists.len() <= 5, "each turn is in one list: {lists:?}");
}

#[tokio::test]
async fn a_lost_turn_among_quiet_turns_goes_on() {
    let world = World::new().await;
    world.quiet_turns(60).await;
    world.turns.lost.lock().unwrap().insert("c37".to_owned());
    let running = world.reconciler(once());
    world.asked("start c37 m from 0").await;
    until(async || running.counts.numbers().checked >= 60).await;
    assert_eq!(world.asks_with("look"), ["look c37"]);
    assert_eq!(world.asks_with("start").len(), 1);
    assert_eq!(running.counts.numbers().started, 1);
}

#[tokio::test]
async fn a_list_that_is_behind_starts_no_second_workflow() {
    let world = World::new().await;
    world.quiet_turns(3).await;
    world.turns.unlisted.lock().unwrap().insert("c1".to_owned());
    let running = world.reconciler(quick());
    until(async || running.counts.numbers().checked >= 12).await;
    let looks = world.asks_with("look");
    assert!(
        !looks.is_empty() && looks.iter().all(|look| look == "look c1"),
        "{looks:?}"
    );
    assert_eq!(world.asks_with("start"), [""; 0]);
    assert_eq!(world.events("c1").await, ["user_message"]);
}

#[tokio::test]
async fn without_a_list_each_turn_is_asked_for_alone() {
    let world = World::new().await;
    world.quiet_turns(5).await;
    *world.turns.is_list_down.lock().unwrap() = true;
    world.turns.lost.lock().unwrap().insert("c4".to_owned());
    let _running = world.reconciler(once());
    world.asked("start c4 m from 0").await;
    for number in 0..5 {
        world.asked(&format!("look c{number}")).await;
    }
    assert_eq!(world.asks_with("start").len(), 1);
}

/// Counts as stuck soon.
fn soon_stuck() -> ReconcilerConfig {
    ReconcilerConfig {
        stuck_after: Duration::from_millis(20),
        ..quick()
    }
}

#[tokio::test]
async fn a_workflow_whose_task_fails_for_ever_is_counted_and_goes_on() {
    let world = World::new().await;
    world.quiet_turns(2).await;
    *world.turns.task_attempt.lock().unwrap() = 5;
    let running = world.reconciler(soon_stuck());
    until(async || running.counts.numbers().stuck >= 4).await;
    for word in ["start", "terminate", "cancel", "signal"] {
        assert_eq!(world.asks_with(word), [""; 0]);
    }
    assert_eq!(running.counts.numbers().failed, 0);
    assert_eq!(world.events("c0").await, ["user_message"]);
}

#[tokio::test]
async fn a_task_that_failed_a_few_times_is_not_stuck() {
    let world = World::new().await;
    world.quiet_turns(1).await;
    *world.turns.task_attempt.lock().unwrap() = 4;
    let running = world.reconciler(soon_stuck());
    until(async || world.asks_with("look").len() >= 3).await;
    assert_eq!(running.counts.numbers().stuck, 0);
}
