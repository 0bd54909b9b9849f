//! Runs that were replaced by a newer one of the same conversation (invariant 11, one run).

use std::fmt::Debug;

use everturn_proto::turn::{SaveEnd, SaveObserve, SaveSteer, SaveThought, save_request::Batch};
use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{
    ClaimedCall, EventWriter, OnUnknownAgent, StepClaim, StepClaims, StoreError, ToolClaim,
    ToolClaims, TurnStart, Turns,
};
use tokio::task::JoinSet;

use super::{
    Backend,
    delegation::agents,
    fixture::{Turn, TurnStore},
};

fn is_replaced<T: Debug>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::RunReplaced { conversation_id }) if conversation_id == "c")
}

/// Asks for a turn as a run of this epoch; returns the epoch to ask again with.
async fn asks_again<S: TurnStore>(turn: &Turn<S>, epoch: u32) -> Option<u32> {
    let mut begin = turn.begin("");
    begin.epoch = Some(epoch);
    match turn.store.begin_turn(begin).await.unwrap() {
        TurnStart::Begun(_) => None,
        TurnStart::AskAgain { epoch } => Some(epoch),
    }
}

pub async fn a_late_begin_of_a_replaced_run_ends_no_turn(backend: &impl Backend) {
    let store = backend.open().await;
    let running = Turn::begun(store.clone(), "c", "m2").await;
    running.asks(0, "look", &[Effect::Read]).await;
    running.queue("m1").await;
    let rows = backend.row_count().await;

    let late = Turn::new(store, "c", "m1");
    let given = asks_again(&late, 0).await;
    assert!(given.is_some(), "another turn runs");
    assert_eq!(backend.row_count().await, rows);
    running.runs(0, 0).await;
    running.complete(1, "answer", &[]).await;
    let ended = running.end(1, AgentExecutionStatus::Completed).await;
    assert_eq!(ended.result.status(), AgentExecutionStatus::Completed);
    assert!(!running.types().await.contains(&"error".to_owned()));
    // Its message still waits for whoever takes it.
    assert_eq!(
        late.begin_again().await.status,
        AgentExecutionStatus::Running
    );
}

/// Every request of the older run is refused, for each kind of tool, and the newer one goes on as if there were none.
pub async fn a_replaced_run_changes_nothing(backend: &impl Backend) {
    let first = Turn::new(backend.open().await, "c", "m");
    let begun = first.begin_as_run("hello").await.unwrap();
    let older = first.clone().under(Some(begun.epoch));
    older
        .asks(0, "look", &[Effect::Read, Effect::Once, Effect::Read])
        .await;
    older
        .store
        .claim_tool(&older.tool(0, 1), "a")
        .await
        .unwrap();
    older.queue("steer").await;

    let taken_over = first.begin_again().await;
    assert_eq!(taken_over.status, AgentExecutionStatus::Running);
    assert!(taken_over.epoch > begun.epoch, "{taken_over:?}");
    let newer = first.clone().under(Some(taken_over.epoch));
    let (rows, events) = (backend.row_count().await, newer.events().await);
    let store = &older.store;
    assert!(is_replaced(&store.claim_step(&older.step(1), None).await));
    for index in 0..2 {
        let claim = store.claim_tool(&older.tool(0, index), "b").await;
        assert!(is_replaced(&claim), "{index}: {claim:?}");
    }
    let delegated = store
        .begin_sub_agent(&older.tool(0, 0), &agents(), OnUnknownAgent::Begin)
        .await;
    assert!(is_replaced(&delegated), "{delegated:?}");
    let execution_id = older.execution_id(0, 0);
    let batches = [
        Batch::Thought(SaveThought {}),
        Batch::Observe(SaveObserve {
            execution_id,
            failure: Some("lost".into()),
        }),
        Batch::Steer(SaveSteer {
            message_id: "steer".into(),
        }),
        Batch::End(SaveEnd {
            status: "cancelled".into(),
            ..SaveEnd::default()
        }),
    ];
    for batch in batches {
        let saved = store.save(&older.request(0, batch)).await;
        assert!(is_replaced(&saved), "{saved:?}");
    }
    assert!(asks_again(&older, begun.epoch).await > Some(taken_over.epoch));
    assert_eq!(backend.row_count().await, rows);
    assert_eq!(newer.events().await, events);

    assert!(matches!(
        store.claim_tool(&newer.tool(0, 0), "b").await.unwrap(),
        ToolClaim::Run { .. }
    ));
    assert!(matches!(
        store.claim_tool(&newer.tool(0, 1), "b").await.unwrap(),
        ToolClaim::OutcomeUnknown { .. }
    ));
    let claim = store.claim_step(&newer.step(1), None).await.unwrap();
    assert!(
        matches!(claim, StepClaim::Call(ClaimedCall { generation: 1, .. })),
        "{claim:?}"
    );
    let ended = newer.end(1, AgentExecutionStatus::Cancelled).await;
    assert_eq!(ended.result.status(), AgentExecutionStatus::Cancelled);
}

/// What the older run was given while it was the newest does not help it later, whether a newer run has taken the turn
/// over, or a newer turn has begun.
pub async fn an_epoch_that_came_too_late_is_of_no_use(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m1").await;
    let older = asks_again(&turn, 0).await.unwrap();
    let newer = asks_again(&turn, 0).await.unwrap();
    assert!(newer > older);
    assert_eq!(asks_again(&turn, newer).await, None, "it has the turn");
    assert_eq!(asks_again(&turn, newer).await, None, "its answer was lost");
    assert!(asks_again(&turn, older).await > Some(newer));

    let turn = turn.clone().under(Some(newer));
    let unused = asks_again(&turn, 0).await.unwrap();
    turn.complete(0, "answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    let next = Turn::begun(turn.store.clone(), "c", "m2").await;
    let late = Turn::new(turn.store.clone(), "c", "m3");
    late.queue("m3").await;
    assert!(asks_again(&late, unused).await.is_some());
    assert_eq!(
        next.begin_again().await.status,
        AgentExecutionStatus::Running
    );
    assert!(!next.types().await.contains(&"error".to_owned()));
}

pub async fn of_runs_that_begin_at_once_one_has_the_turn(backend: &impl Backend) {
    let handles = [backend.open().await, backend.open().await];
    let turn = Turn::begun(handles[0].clone(), "c", "m").await;
    let mut tasks = JoinSet::new();
    for number in 0..16 {
        let turn = Turn {
            store: handles[number % 2].clone(),
            ..turn.clone()
        };
        tasks.spawn(async move { turn.begin_again().await.epoch });
    }
    let epochs = tasks.join_all().await;
    let newest = *epochs.iter().max().unwrap();
    for epoch in epochs {
        let claim = turn
            .store
            .claim_step(&turn.clone().under(Some(epoch)).step(0), None)
            .await;
        assert_eq!(claim.is_ok(), epoch == newest, "{epoch:?}: {claim:?}");
    }
}
