//! The reconciler on the real store, with an engine that records what it is asked.

mod hooks;
mod quiet;

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_gateway::{
    Reconciler,
    config::{LostTurns, ReconcilerConfig},
    reconciler::ReconcilerNumbers,
};
use everturn_proto::{
    ids,
    turn::{AgentDefinition, SaveEnd, SaveRequest, save_request::Batch},
    words::{AgentExecutionStatus, OnBusy},
};
use everturn_store::{
    Access, BeginTurn, Conversations, EventReader, EventWriter, MessageCancel, MessageQueue,
    NewConversation, NewMessage, OnUnknownAgent, PageLimit, Reconciliation, Turns,
    sqlite::SqliteStore,
};
use everturn_stream::{CancelNews, InProcessStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::{RecordingTurns, until};

/// A store, an engine, and gateways that look at both.
struct World {
    store: SqliteStore,
    turns: Arc<RecordingTurns>,
    stream: Arc<InProcessStream>,
}

impl World {
    async fn new() -> Self {
        Self {
            store: SqliteStore::open_in_memory().await.unwrap(),
            turns: Arc::default(),
            stream: Arc::default(),
        }
    }

    /// Starts a reconciler. It ends when the guard is dropped.
    fn reconciler(&self, config: ReconcilerConfig) -> Running {
        self.reconciler_on(Arc::new(self.store.clone()), config)
    }

    /// Starts a reconciler with another view of the store.
    fn reconciler_on(&self, store: Arc<dyn Reconciliation>, config: ReconcilerConfig) -> Running {
        let reconciler = Reconciler::new(store, self.turns.clone(), self.stream.clone(), config);
        let counts = reconciler.counts();
        let shutdown = CancellationToken::new();
        tokio::spawn(reconciler.run(shutdown.clone()));
        Running {
            counts,
            _guard: shutdown.drop_guard(),
        }
    }

    async fn create(&self, id: &str) {
        let new = NewConversation {
            name: id.to_owned(),
            access: Access::tenant("default"),
            agent: "default".to_owned(),
            title: None,
            model: None,
            metadata: std::collections::BTreeMap::new(),
        };
        self.store.create_conversation(new).await.unwrap();
    }

    async fn queue(&self, conversation: &str, id: &str, on_busy: OnBusy) {
        self.store_message(conversation, id, on_busy).await;
        // Messages are in the order of their times, which have milliseconds.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    async fn store_message(&self, conversation: &str, id: &str, on_busy: OnBusy) {
        let new = NewMessage {
            conversation_id: conversation.to_owned(),
            message_id: id.to_owned(),
            client_message_id: None,
            content: "Hello.".to_owned(),
            sent_by: None,
            model: None,
            names_model: false,
            attachments: Vec::new(),
            max_attached_bytes: 0,
            on_busy,
            max_queued: 100,
            max_turns: None,
            max_turns_of_owner: None,
        };
        let access = Access::tenant("default");
        self.store.queue_message(&access, new).await.unwrap();
    }

    /// Makes so many conversations, `c0` and so on, in each of which the message `m` waits.
    async fn queue_in(&self, conversations: usize) -> Vec<String> {
        let ids: Vec<_> = (0..conversations)
            .map(|number| format!("c{number}"))
            .collect();
        for id in &ids {
            self.create(id).await;
            self.queue(id, "m", OnBusy::Queue).await;
        }
        ids
    }

    /// Begins the turn of a message as a worker does.
    async fn begin(&self, conversation: &str, message: &str) {
        let begin = BeginTurn {
            conversation_id: conversation.to_owned(),
            tenant_id: "default".to_owned(),
            message_id: message.to_owned(),
            content: None,
            agent_execution_id: ids::root_agent_execution_id(conversation, message),
            agent: AgentDefinition {
                name: "default".to_owned(),
                model: Some("m".to_owned()),
                ..AgentDefinition::default()
            },
            on_unknown_agent: OnUnknownAgent::Begin,
            epoch: Some(0),
            tenant_budget: everturn_store::DayBudget::default(),
        };
        self.store.begin_turn(begin).await.unwrap();
    }

    /// Ends the turn of a message as a worker does.
    async fn end(&self, conversation: &str, message: &str) {
        let end = SaveEnd {
            status: (&AgentExecutionStatus::Cancelled).into(),
            ..SaveEnd::default()
        };
        let save = SaveRequest {
            conversation_id: conversation.to_owned(),
            message_id: message.to_owned(),
            agent_execution_id: ids::root_agent_execution_id(conversation, message),
            step: 0,
            epoch: None,
            batch: Some(Batch::End(end)),
        };
        self.store.save(&save).await.unwrap();
    }

    /// The events of a conversation by type; of an error, its code.
    async fn events(&self, conversation: &str) -> Vec<String> {
        let access = Access::tenant("default");
        let found = self.store.conversation(&access, conversation).await;
        let log = found.unwrap().unwrap().log();
        let page = self.store.events(&access, &log, 0, PageLimit::rows(100));
        let events = page.await.unwrap().events;
        let shown = events.into_iter().map(|event| {
            let data = event.event_data.unwrap_or_default().to_value();
            match data["code"].as_str() {
                Some(code) => code.to_owned(),
                None => event.event_type,
            }
        });
        shown.collect()
    }

    fn engine_is_down(&self, is_down: bool) {
        *self.turns.is_down.lock().unwrap() = is_down;
    }

    fn no_workflow_runs(&self) {
        *self.turns.is_idle.lock().unwrap() = true;
    }

    /// Waits until the engine was asked this.
    async fn asked(&self, call: &str) {
        until(async || self.turns.calls.lock().unwrap().iter().any(|c| c == call)).await;
    }

    fn asks_with(&self, word: &str) -> Vec<String> {
        let calls = self.turns.calls.lock().unwrap();
        let calls = calls.iter().filter(|call| call.starts_with(word));
        calls.cloned().collect()
    }
}

struct Running {
    counts: Arc<everturn_gateway::reconciler::ReconcilerCounts>,
    _guard: DropGuard,
}

/// Looks often. What was looked at is looked at again at once.
fn quick() -> ReconcilerConfig {
    ReconcilerConfig {
        every: Duration::from_millis(40),
        grace: Duration::from_millis(20),
        again: Duration::from_millis(20),
        calls_per_second: NonZeroU32::new(1000).unwrap(),
        lists_per_second: NonZeroU32::new(1000).unwrap(),
        ..ReconcilerConfig::default()
    }
}

#[tokio::test]
async fn a_message_whose_signal_never_arrived_has_its_turn() {
    let world = World::new().await;
    world.create("c").await;
    world.queue("c", "m1", OnBusy::Queue).await;
    world.queue("c", "m2", OnBusy::Queue).await;
    world.no_workflow_runs();
    let running = world.reconciler(quick());
    world.asked("start c m1 from 0, then others").await;
    world.begin("c", "m1").await;
    world.end("c", "m1").await;
    world.begin("c", "m2").await;
    world.end("c", "m2").await;
    assert!(running.counts.numbers().started >= 1);
    // What has ended is left alone.
    until(async || {
        let checked = running.counts.numbers().checked;
        tokio::time::sleep(Duration::from_millis(200)).await;
        running.counts.numbers().checked == checked
    })
    .await;
}

#[tokio::test]
async fn a_running_workflow_is_told_once_of_a_message() {
    let world = World::new().await;
    world.create("c").await;
    world.queue("c", "m", OnBusy::Queue).await;
    world.begin("c", "m").await;
    world.queue("c", "s", OnBusy::Steer).await;
    world.queue("c", "r", OnBusy::Reject).await;
    let running = world.reconciler(quick());
    world.asked("signal c s").await;
    until(async || running.counts.numbers().checked >= 5).await;
    assert_eq!(world.asks_with("signal"), ["signal c s"]);
    assert_eq!(world.asks_with("start"), [""; 0]);
    assert_eq!(
        running.counts.numbers(),
        ReconcilerNumbers {
            signalled: 1,
            started: 0,
            failed: 0,
            ..running.counts.numbers()
        }
    );
}

#[tokio::test]
async fn a_running_workflow_is_told_of_a_cancel_whose_signal_never_arrived() {
    let world = World::new().await;
    world.create("c").await;
    world.queue("c", "m", OnBusy::Queue).await;
    world.begin("c", "m").await;
    let access = Access::tenant("default");
    let cancel = world
        .store
        .cancel_message(&access, "c", "m", "cancelled by the user");
    assert_eq!(cancel.await.unwrap(), MessageCancel::Running);
    let running = world.reconciler(quick());
    world.asked("cancel c m").await;
    assert!(running.counts.numbers().signalled >= 1);
    world.end("c", "m").await;
    // The ended turn is left alone.
    until(async || {
        let cancels = world.asks_with("cancel").len();
        tokio::time::sleep(Duration::from_millis(200)).await;
        world.asks_with("cancel").len() == cancels
    })
    .await;
    assert_eq!(world.asks_with("signal"), [""; 0]);
    assert_eq!(world.asks_with("start"), [""; 0]);
}

#[tokio::test]
async fn a_turn_that_gets_no_further_is_ended() {
    let world = World::new().await;
    world.create("c").await;
    world.queue("c", "m", OnBusy::Queue).await;
    world.begin("c", "m").await;
    world.no_workflow_runs();
    let _running = world.reconciler(quick());
    until(async || world.events("c").await == ["user_message", "turn_lost"]).await;
    assert_eq!(world.asks_with("start").len(), 3);
}

#[tokio::test]
async fn lost_turns_are_ended_when_they_are_not_to_be_resumed() {
    let world = World::new().await;
    world.create("c").await;
    world.queue("c", "m", OnBusy::Queue).await;
    world.begin("c", "m").await;
    world.queue("c", "waits", OnBusy::Queue).await;
    world.no_workflow_runs();
    let _running = world.reconciler(ReconcilerConfig {
        lost_turns: LostTurns::End,
        ..quick()
    });
    world.asked("start c waits from 0").await;
    let events = world.events("c").await;
    assert_eq!(events, ["user_message", "turn_lost"]);
}

#[tokio::test]
async fn the_call_of_a_lost_turn_is_told_first() {
    for lost_turns in [LostTurns::Resume, LostTurns::End] {
        let world = World::new().await;
        world.create("c").await;
        world.queue("c", "m", OnBusy::Queue).await;
        world.begin("c", "m").await;
        world.no_workflow_runs();
        let mut announced = world.stream.follow_cancels().announced;
        let _running = world.reconciler(ReconcilerConfig {
            lost_turns,
            ..quick()
        });
        let told = announced.recv().await.unwrap();
        assert_eq!(told, ids::root_agent_execution_id("c", "m"));
        if lost_turns == LostTurns::End {
            let events = world.events("c").await;
            assert_eq!(
                events,
                ["user_message"],
                "the call has time to store its text"
            );
        }
    }
}

#[tokio::test]
async fn a_message_that_was_to_be_rejected_never_runs_later() {
    let world = World::new().await;
    world.create("c").await;
    world.queue("c", "r", OnBusy::Reject).await;
    world.no_workflow_runs();
    let running = world.reconciler(quick());
    until(async || world.events("c").await == ["user_message", "turn_not_started"]).await;
    assert_eq!(world.asks_with("start"), [""; 0]);
    assert_eq!(running.counts.numbers().failed, 1);
}

#[tokio::test]
async fn an_engine_that_is_away_is_waited_for() {
    let world = World::new().await;
    world.queue_in(5).await;
    world.no_workflow_runs();
    world.engine_is_down(true);
    let _running = world.reconciler(quick());
    until(async || world.asks_with("look").len() >= 3).await;
    for number in 0..5 {
        let events = world.events(&format!("c{number}")).await;
        assert_eq!(events, [""; 0], "nothing is given up");
    }
    world.engine_is_down(false);
    for number in 0..5 {
        world.asked(&format!("start c{number} m from 0")).await;
    }
}

/// The engine has no list, and is so slow that a look reaches a few of the conversations that are due.
#[tokio::test]
async fn every_conversation_is_looked_at_however_slow_the_engine_is() {
    const CONVERSATIONS: usize = 12;
    let world = World::new().await;
    for id in world.queue_in(CONVERSATIONS).await {
        world.begin(&id, "m").await;
    }
    let config = quick();
    *world.turns.look_takes.lock().unwrap() = config.every / 4;
    *world.turns.is_list_down.lock().unwrap() = true;
    let running = world.reconciler(config);
    until(async || running.counts.numbers().checked >= 8 * CONVERSATIONS as u64).await;
    let mut looks = world.asks_with("look");
    looks.sort();
    looks.dedup();
    assert_eq!(looks.len(), CONVERSATIONS, "{looks:?}");
}

#[tokio::test]
async fn several_gateways_ask_for_no_more_than_one_may() {
    const CONVERSATIONS: usize = 40;
    let world = World::new().await;
    world.queue_in(CONVERSATIONS).await;
    world.no_workflow_runs();
    let config = ReconcilerConfig {
        again: Duration::from_mins(1),
        calls_per_second: NonZeroU32::new(100).unwrap(),
        ..quick()
    };
    let begun = Instant::now();
    let _running = [(); 4].map(|()| world.reconciler(config.clone()));
    until(async || world.asks_with("start").len() >= CONVERSATIONS).await;
    let took = begun.elapsed();
    let mut starts = world.asks_with("start");
    starts.sort();
    starts.dedup();
    assert_eq!(starts.len(), CONVERSATIONS, "each is started once");
    let calls = world.turns.calls.lock().unwrap().len();
    assert_eq!(calls, 2 * CONVERSATIONS);
    assert!(
        took >= Duration::from_millis(700),
        "{calls} calls at 100 a second came within {took:?}"
    );
}
