//! Claims (invariant 5, paid once, and invariant 6, done once).

use std::collections::HashSet;

use everturn_proto::{
    turn::LlmCompleteState,
    words::{AgentExecutionStatus, Effect, ToolStatus},
};
use everturn_store::{
    Access, ClaimedCall, CompletedStep, EventReader, ModelCalls, PageLimit, StepClaim, StepClaims,
    StepKey, StoreError, ToolClaim, ToolClaims,
};

use super::{
    Backend,
    fixture::{EFFECTS, Turn, state, tool_end},
};

pub async fn generations_rise_until_the_call_is_made(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let claim = async |step| turn.store.claim_step(&turn.step(step), None).await.unwrap();
    let log_id = turn.conversation().await.log_id;
    let call = |generation, calls, is_ahead| {
        StepClaim::Call(ClaimedCall {
            log_id: log_id.clone(),
            tenant_id: "default".to_owned(),
            owner_id: None,
            metadata: std::collections::BTreeMap::new(),
            generation,
            calls,
            is_ahead,
            has_budget: false,
            background: None,
            chain: None,
        })
    };
    assert_eq!(claim(0).await, call(1, 1, false));
    assert_eq!(claim(0).await, call(2, 2, false));
    let holds = async |generation| turn.store.holds_claim(&turn.step(0), generation).await;
    assert!(!holds(1).await.unwrap() && holds(2).await.unwrap());
    turn.complete(0, "paid", &[Effect::Read]).await;
    let StepClaim::Stored(stored) = claim(0).await else {
        panic!("the call was paid")
    };
    assert_eq!(stored, state("paid", vec![turn.call(0, 0, Effect::Read)]));
    let next = claim(1).await;
    assert_eq!(next, call(3, 1, true), "the first step is not saved");
    turn.thought(0).await;
    assert_eq!(claim(1).await, call(4, 2, true), "its tool is open");
    turn.runs(0, 0).await;
    let next = claim(1).await;
    assert_eq!(next, call(5, 3, false), "rising over the whole execution");
    let mut unknown = turn.step(0);
    unknown.agent_execution_id = "run_unknown".into();
    assert!(matches!(
        turn.store.claim_step(&unknown, None).await,
        Err(StoreError::NotFound { .. })
    ));
}

pub async fn a_page_of_events_says_the_newest_generations(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let other = Turn::begun(turn.store.clone(), "other", "m").await;
    other.store.claim_step(&other.step(0), None).await.unwrap();
    let conversation = turn.conversation().await;
    let (access, log) = (Access::tenant(&conversation.tenant_id), conversation.log());
    let newest = async |from| {
        let page = turn.store.events(&access, &log, from, PageLimit::rows(1));
        let generations = page.await.unwrap().generations;
        generations.into_iter().collect::<Vec<_>>()
    };
    let id = turn.step(0).agent_execution_id;
    assert_eq!(newest(1).await, [(id.clone(), 0)], "nothing is claimed yet");
    for generation in [1, 2] {
        turn.store.claim_step(&turn.step(0), None).await.unwrap();
        assert_eq!(newest(1).await, [(id.clone(), generation)]);
    }
    assert_eq!(newest(1000).await, [], "no event is there");
    turn.complete(0, "said", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    assert_eq!(newest(1).await, [], "it has ended");
}

pub async fn racing_claims_get_different_generations(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let handles = [turn.store.clone(), backend.open().await];
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let (store, step) = (handles[number % 2].clone(), turn.step(0));
            tokio::spawn(async move { store.claim_step(&step, None).await.unwrap() })
        })
        .collect();
    let mut generations = HashSet::new();
    for task in tasks {
        let StepClaim::Call(ClaimedCall { generation, .. }) = task.await.unwrap() else {
            panic!("nothing is stored")
        };
        generations.insert(generation);
    }
    assert_eq!(generations, (1..=16).collect());
}

pub async fn the_first_completed_step_wins(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let rows = backend.row_count().await;
    let first = turn
        .store
        .complete_step(&turn.step(0), state("first", vec![]))
        .await
        .unwrap();
    let second = turn
        .store
        .complete_step(&turn.step(0), state("second", vec![]))
        .await
        .unwrap();
    let stored = CompletedStep::Stored(state("first", vec![]));
    assert_eq!((&first, &second), (&stored, &stored));
    assert_eq!(backend.row_count().await, rows + 1);
    let mut unknown = turn.step(0);
    unknown.agent_execution_id = "run_unknown".into();
    let refused = turn.store.complete_step(&unknown, state("x", vec![])).await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "{refused:?}"
    );
}

/// A worker that was stopped in its call wakes after a newer call, a newer run or the end, and changes nothing.
pub async fn the_reply_of_an_obsolete_call_is_refused(backend: &impl Backend) {
    let of_call = |generation, text: &str| LlmCompleteState {
        generation,
        ..state(text, vec![])
    };
    let first = Turn::new(backend.open().await, "c", "m");
    let begun = first.begin_as_run("hello").await.unwrap();
    let older = first.clone().under(Some(begun.epoch));
    let store = &older.store;
    for _ in 0..2 {
        store.claim_step(&older.step(0), None).await.unwrap();
    }
    let rows = backend.row_count().await;
    let late = store
        .complete_step(&older.step(0), of_call(1, "late"))
        .await;
    assert!(
        matches!(late, Err(StoreError::Superseded { generation: 1, .. })),
        "{late:?}"
    );

    let taken_over = first.begin_again().await;
    let newer = first.clone().under(Some(taken_over.epoch));
    let replaced = store.complete_step(&older.step(0), of_call(2, "old")).await;
    assert!(
        matches!(replaced, Err(StoreError::RunReplaced { .. })),
        "{replaced:?}"
    );
    assert_eq!(backend.row_count().await, rows);

    store.claim_step(&newer.step(0), None).await.unwrap();
    let stored = store.complete_step(&newer.step(0), of_call(3, "new")).await;
    let expected = CompletedStep::Stored(of_call(3, "new"));
    assert_eq!(stored.unwrap(), expected);
    let repeated = store.complete_step(&older.step(0), of_call(2, "old")).await;
    assert_eq!(repeated.unwrap(), expected, "the stored reply wins");

    newer.end(0, AgentExecutionStatus::Completed).await;
    let rows = backend.row_count().await;
    let ended = store
        .complete_step(&newer.step(1), of_call(4, "late"))
        .await;
    assert!(matches!(ended, Err(StoreError::Conflict(_))), "{ended:?}");
    assert_eq!(backend.row_count().await, rows);
}

pub async fn the_newest_partial_wins(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    for (generation, text) in [
        (2, "second"),
        (2, "second, longer"),
        (1, "from a worker thought dead"),
    ] {
        let mut partial = state(text, vec![]);
        partial.generation = generation;
        turn.store
            .save_partial(&turn.step(0), partial)
            .await
            .unwrap();
    }
    let claim = turn.store.claim_step(&turn.step(0), None).await.unwrap();
    assert!(
        matches!(claim, StepClaim::Call(_)),
        "a partial text is not a paid call"
    );
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    assert_eq!(
        turn.data("assistant_message").await["content"],
        "second, longer"
    );
}

pub async fn an_ended_execution_gives_no_claim(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.complete(0, "answer", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    assert!(!turn.store.holds_claim(&turn.step(0), 9).await.unwrap());
    assert!(matches!(
        turn.store.claim_step(&turn.step(0), None).await,
        Ok(StepClaim::Stored(_))
    ));
    assert!(matches!(
        turn.store.claim_step(&turn.step(1), None).await,
        Err(StoreError::Conflict(_))
    ));
}

pub async fn tools_of_each_effect_class(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &EFFECTS).await;
    let rows = backend.row_count().await;
    for (index, effect) in EFFECTS.into_iter().enumerate() {
        let claim = async |claimant| {
            turn.store
                .claim_tool(&turn.tool(0, index), claimant)
                .await
                .unwrap()
        };
        let ToolClaim::Run { record, caller } = claim("a").await else {
            panic!("{effect}: the first attempt runs")
        };
        assert_eq!(
            (record.status.clone(), record.attempt, caller.depth),
            (ToolStatus::Running, 1, 0)
        );
        let told = (
            caller.tenant_id.as_str(),
            caller.owner_id,
            caller.agent.as_str(),
        );
        assert_eq!(told, ("default", None, "default"));
        assert_eq!(record.call, turn.call(0, index, effect.clone()));
        match claim("b").await {
            ToolClaim::Run { record: again, .. } => {
                assert_ne!(effect, Effect::Once);
                assert_eq!(again.attempt, 2);
            }
            ToolClaim::OutcomeUnknown { record: left, .. } => {
                assert_eq!(effect, Effect::Once);
                assert_eq!(
                    (left.status.clone(), left.attempt),
                    (ToolStatus::Running, 1)
                );
            }
            ToolClaim::Ended(_) | ToolClaim::Asks(_) => panic!("{effect}: nothing ended it"),
        }
        let ended = turn
            .store
            .finish_tool(&turn.tool(0, index), tool_end("1"))
            .await
            .unwrap();
        assert_eq!(claim("c").await, ToolClaim::Ended(ended));
    }
    assert_eq!(
        backend.row_count().await,
        rows + 6,
        "one tool_start and one tool_complete each, whatever the attempts"
    );
    let mut unknown = turn.tool(0, 0);
    unknown.execution_id = "exec_none".into();
    assert!(matches!(
        turn.store.claim_tool(&unknown, "a").await,
        Err(StoreError::NotFound { .. })
    ));
    assert!(matches!(
        turn.store.finish_tool(&unknown, tool_end("1")).await,
        Err(StoreError::NotFound { .. })
    ));
}

/// The answer to a claim may be lost after its commit. Nothing ran then, so the same claimant may ask again.
pub async fn the_same_claimant_may_ask_again(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &EFFECTS).await;
    for (index, effect) in EFFECTS.into_iter().enumerate() {
        let claim = async |claimant| {
            turn.store
                .claim_tool(&turn.tool(0, index), claimant)
                .await
                .unwrap()
        };
        let first = claim("a").await;
        assert!(
            matches!(&first, ToolClaim::Run { record, .. } if record.attempt == 1),
            "{effect}: {first:?}"
        );
        assert_eq!(claim("a").await, first, "{effect}: the same attempt");
        let other = claim("b").await;
        let may_run = matches!(&other, ToolClaim::Run { record, .. } if record.attempt == 2);
        assert_eq!(may_run, effect != Effect::Once, "{other:?}");
    }
    let again = turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    assert!(
        matches!(&again, ToolClaim::Run { record, .. } if record.attempt == 3),
        "another has claimed it since: {again:?}"
    );
}

pub async fn the_first_end_of_a_tool_wins(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Read]).await;
    let key = turn.tool(0, 0);
    turn.store.claim_tool(&key, "a").await.unwrap();
    let mut end = tool_end("\"first\"");
    end.full_result = Some(super::fixture::json("\"first and all of it\""));
    let first = turn.store.finish_tool(&key, end.clone()).await.unwrap();
    assert_eq!(first.end, Some(end));
    assert_eq!(
        turn.store
            .finish_tool(&key, tool_end("\"second\""))
            .await
            .unwrap(),
        first
    );
    turn.observe(0, 0, "").await;
    assert_eq!(
        turn.store.claim_tool(&key, "a").await.unwrap(),
        ToolClaim::Ended(first),
        "the observe keeps all of it"
    );
    let mut open = tool_end("1");
    open.status = ToolStatus::Running;
    assert!(matches!(
        turn.store.finish_tool(&key, open).await,
        Err(StoreError::Conflict(_))
    ));
}

pub async fn a_reply_with_a_used_call_id_is_not_stored(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Read, Effect::Read]).await;
    let rows = backend.row_count().await;
    let used = turn.call(0, 1, Effect::Read).call_id;
    let mut calls = [0, 1]
        .map(|index| turn.call(1, index, Effect::Read))
        .to_vec();
    calls[1].call_id.clone_from(&used);
    let repeats = state("again", calls);
    let complete = async |step: StepKey| {
        let completed = turn.store.complete_step(&step, repeats.clone());
        completed.await.unwrap()
    };
    let refused = complete(turn.step(1)).await;
    assert_eq!(refused, CompletedStep::CallIdsUsed(vec![used]));
    assert_eq!(backend.row_count().await, rows);

    let CompletedStep::Stored(first) = complete(turn.step(0)).await else {
        panic!("the reply of this step is stored")
    };
    assert_eq!(first.text, "");
    let other = Turn::begun(turn.store.clone(), "another", "m").await;
    let stored = CompletedStep::Stored(repeats.clone());
    assert_eq!(complete(other.step(0)).await, stored);
}
