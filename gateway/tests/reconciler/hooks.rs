//! Hooks after turns whose workflow was not started.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use chrono::{TimeDelta, Utc};
use everturn_gateway::{config::ReconcilerConfig, turns::HooksOutcome};
use everturn_proto::{
    ids::{self, AFTER_TURN_STEP},
    turn::{LlmCompleteState, SaveEnd, SaveRequest, WaitingHooks, save_request::Batch},
    words::{AgentExecutionStatus, FinishReason, OnBusy},
};
use everturn_store::{
    Access, Conversations, EventWriter, Reconciliation, StepClaims, StepKey, Turns,
};

use super::{World, quick, quiet::CountingStore};
use crate::support::until;

fn step(conversation: &str, step: u32) -> StepKey {
    StepKey {
        conversation_id: conversation.to_owned(),
        message_id: "m".to_owned(),
        agent_execution_id: ids::root_agent_execution_id(conversation, "m"),
        step,
        epoch: None,
    }
}

impl World {
    /// Completes a turn whose agent has hooks, as a worker does. The run of the conversation is lost afterwards.
    async fn complete(&self, conversation: &str) {
        self.create(conversation).await;
        self.queue(conversation, "m", OnBusy::Queue).await;
        self.begin(conversation, "m").await;
        let step = step(conversation, 0);
        let state = LlmCompleteState {
            text: "Hello.".to_owned(),
            finish: FinishReason::Stop.into(),
            generation: 1,
            ..LlmCompleteState::default()
        };
        self.store.complete_step(&step, state).await.unwrap();
        let end = SaveEnd {
            status: AgentExecutionStatus::Completed.into(),
            hooks: Some(WaitingHooks::default()),
            ..SaveEnd::default()
        };
        let save = SaveRequest {
            conversation_id: step.conversation_id,
            message_id: step.message_id,
            agent_execution_id: step.agent_execution_id,
            step: 0,
            epoch: None,
            batch: Some(Batch::End(end)),
        };
        self.store.save(&save).await.unwrap();
    }

    /// Begins the hooks, as the workflow of the hooks does.
    async fn begin_hooks(&self, conversation: &str) {
        let step = step(conversation, AFTER_TURN_STEP);
        self.store.begin_after_turn(&step, &[]).await.unwrap();
    }

    /// The number of turns whose hooks wait for their workflow.
    async fn waiting_hooks(&self) -> usize {
        let later = Utc::now() + TimeDelta::days(1);
        self.store.due_hooks(later, 100).await.unwrap().len()
    }

    /// Asserts that every start of hooks is the given call.
    fn starts_only(&self, expected: &str) {
        let starts = self.asks_with("hooks");
        assert!(starts.iter().all(|call| call == expected), "{starts:?}");
    }

    fn found_hooks(&self, outcome: HooksOutcome) {
        *self.turns.hooks_outcome.lock().unwrap() = Some(outcome);
    }
}

#[tokio::test]
async fn hooks_without_a_workflow_are_started_until_they_begin() {
    let world = World::new().await;
    world.complete("c").await;
    let running = world.reconciler(quick());
    // The engine loses the first workflow.
    until(async || world.asks_with("hooks").len() >= 2).await;
    world.starts_only("hooks c m after 1");
    world.begin_hooks("c").await;
    assert_eq!(world.waiting_hooks().await, 0);
    until(async || {
        let starts = world.asks_with("hooks").len();
        tokio::time::sleep(Duration::from_millis(200)).await;
        world.asks_with("hooks").len() == starts
    })
    .await;
    let starts = world.asks_with("hooks").len() as u64;
    assert_eq!(running.counts.numbers().started, starts);
    assert_eq!(world.asks_with("start"), [""; 0], "no turn is started");
}

#[tokio::test]
async fn hooks_with_a_running_workflow_wait_for_it() {
    let world = World::new().await;
    world.complete("c").await;
    world.found_hooks(HooksOutcome::Runs);
    let _running = world.reconciler(quick());
    until(async || world.asks_with("hooks").len() >= 3).await;
    assert_eq!(world.waiting_hooks().await, 1);
}

#[tokio::test]
async fn hooks_whose_workflow_has_ended_are_given_up() {
    let world = World::new().await;
    world.complete("c").await;
    world.found_hooks(HooksOutcome::Ended);
    let _running = world.reconciler(quick());
    until(async || world.waiting_hooks().await == 0).await;
    assert_eq!(world.asks_with("hooks"), ["hooks c m after 1"]);
}

#[tokio::test]
async fn young_hooks_are_left_to_the_run_of_the_conversation() {
    let world = World::new().await;
    world.complete("c").await;
    let store = Arc::new(CountingStore::of(&world));
    let _running = world.reconciler_on(
        store.clone(),
        ReconcilerConfig {
            grace: Duration::from_hours(1),
            ..quick()
        },
    );
    until(async || store.counted("due_hooks") >= 3).await;
    assert_eq!(world.asks_with("hooks"), [""; 0]);
}

#[tokio::test]
async fn hooks_wait_for_an_engine_that_is_away() {
    let world = World::new().await;
    world.complete("c").await;
    world.engine_is_down(true);
    let _running = world.reconciler(quick());
    until(async || world.asks_with("hooks").len() >= 5).await;
    assert_eq!(world.waiting_hooks().await, 1);
    world.engine_is_down(false);
    let down = world.asks_with("hooks").len();
    until(async || world.asks_with("hooks").len() > down).await;
}

#[tokio::test]
async fn a_look_starts_no_more_hooks_than_its_calls_allow() {
    const TURNS: usize = 10;
    let world = World::new().await;
    for number in 0..TURNS {
        world.complete(&format!("c{number}")).await;
    }
    let _running = world.reconciler(ReconcilerConfig {
        again: Duration::from_hours(1),
        list_size: NonZeroU32::new(3).unwrap(),
        ..quick()
    });
    until(async || world.asks_with("hooks").len() >= TURNS).await;
    let mut starts = world.asks_with("hooks");
    starts.sort();
    starts.dedup();
    assert_eq!(starts.len(), TURNS, "each is started once");
}

#[tokio::test]
async fn hooks_of_a_removed_conversation_are_not_started() {
    let world = World::new().await;
    world.complete("removed").await;
    let access = Access::tenant("default");
    let removed = world.store.delete_conversation(&access, "removed", None);
    assert!(removed.await.unwrap());
    world.complete("c").await;
    let _running = world.reconciler(quick());
    until(async || world.asks_with("hooks").len() >= 2).await;
    world.starts_only("hooks c m after 1");
}
