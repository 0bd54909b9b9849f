//! Usage of tenants: the sums by agent, and the calls that were cut.

use everturn_proto::{
    money::{ASSUMED_BYTES_PER_TOKEN, ASSUMED_OUTPUT_TOKENS},
    turn::LlmCompleteState,
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{
    Access, AgentExecutions, BackgroundResponse, Conversations, CutCall, CutCalls, ModelCalls,
    Reservation, StepClaim, StepClaims, StepKey, TenantUsage, UsageBy, UsageDay, UsageQuery,
};
use serde_json::{Value, json};

use super::{
    Backend,
    budgets::{begun_with, of_tokens, reply, tokens, used_up},
    fixture::{Turn, TurnStore, agent},
};

async fn claim<S: StepClaims>(store: &S, step: &StepKey) -> u32 {
    match store.claim_step(step, None).await.unwrap() {
        StepClaim::Call(call) => call.generation,
        other @ (StepClaim::Stored(_) | StepClaim::Cancelled(_)) => panic!("{other:?}"),
    }
}

async fn by_agent<S: TenantUsage>(store: &S, agent: Option<&str>) -> Vec<UsageDay> {
    let query = UsageQuery {
        by: UsageBy::Agent,
        agent: agent.map(Into::into),
        from: "2000-01-01".into(),
        to: "9999-12-31".into(),
        limit: 10,
        ..UsageQuery::default()
    };
    store.usage_days("default", &query).await.unwrap()
}

/// Returns the numbers of cut calls and of their tokens, by model.
async fn cut<S: TenantUsage>(store: &S) -> Vec<(String, u64, u64)> {
    let query = UsageQuery {
        from: "2000-01-01".into(),
        to: "9999-12-31".into(),
        limit: 10,
        ..UsageQuery::default()
    };
    let days = store.usage_days("default", &query).await.unwrap();
    let days = days.into_iter().filter(|day| day.cut_calls > 0);
    days.map(|day| (day.name().to_owned(), day.cut_calls, day.cut_tokens))
        .collect()
}

pub async fn a_cut_call_counts_without_a_budget(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "plain", "m").await;
    let (store, step) = (&turn.store, turn.step(0));
    let note = async |generation, most: Option<u64>, other: Option<&str>| {
        let call = most.map(|most| CutCall {
            most: tokens(most),
            other_model: other.map(Into::into),
        });
        let noted = store.note_unanswered_call(&step, generation, call.as_ref());
        noted.await.unwrap();
    };
    let refused = claim(store, &step).await;
    note(refused, None, None).await;
    let waited = claim(store, &step).await;
    store.release_step(&step, waited).await.unwrap();
    assert_eq!(cut(store).await, []);
    let failed = claim(store, &step).await;
    note(failed, Some(200), Some("p/second")).await;
    let answered = claim(store, &step).await;
    note(failed, Some(900), None).await;
    assert_eq!(cut(store).await, [("p/second".into(), 1, 200)]);
    assert_eq!(answered, 4);
    store.complete_step(&step, reply()).await.unwrap();
    turn.end(0, AgentExecutionStatus::Completed).await;
    let found = by_agent(store, None).await;
    let [day] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((day.calls, day.nano_usd), (1, 3));
    assert_eq!((day.cut_calls, day.cut_tokens), (1, 200));
    assert_eq!((&day.model, day.name()), (&None, agent().name.as_str()));
    assert_eq!(by_agent(store, Some("another")).await, []);
    let end = last_event(&turn).await;
    assert_eq!(
        (&end["cut_calls"], &end["cut_tokens"]),
        (&json!(1), &json!(200))
    );
    assert_eq!(end.get("cut_cost_usd"), None, "{end}");
    assert_eq!(end["usage"]["input_tokens"], 100, "{end}");
    let expected = CutCalls {
        calls: 1,
        tokens: 200,
        nano_usd: 0,
    };
    assert_eq!(cut_of_conversation(&turn).await, expected);
}

async fn last_event(turn: &Turn<impl TurnStore>) -> Value {
    let events = turn.events().await;
    let last = events.last().unwrap();
    last.event_data.as_ref().unwrap().to_value()
}

/// Returns the cut calls of the turn's conversation, after a comparison with the turn's only agent execution.
async fn cut_of_conversation<S: TurnStore + AgentExecutions>(turn: &Turn<S>) -> CutCalls {
    let (access, id) = (Access::tenant("default"), &turn.conversation);
    let shown = turn.store.shown_conversation(&access, id).await;
    let found = turn.store.agent_execution(&access, id, &turn.execution);
    let (shown, execution) = (shown.unwrap().unwrap(), found.await.unwrap().unwrap());
    assert_eq!(shown.spent.cut, execution.spent.cut);
    shown.spent.cut
}

/// A turn whose provider counts no tokens.
pub async fn an_estimate_is_told(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "plain", "m").await;
    let store = &turn.store;
    let estimated = LlmCompleteState {
        is_estimated: true,
        ..reply()
    };
    let step = turn.step(0);
    claim(store, &step).await;
    store.complete_step(&step, estimated).await.unwrap();
    let access = Access::tenant("default");
    let usage = async || {
        let shown = store.shown_conversation(&access, "plain").await;
        shown.unwrap().unwrap().spent.usage
    };
    assert!(usage().await.estimated, "while the turn runs");
    turn.end(0, AgentExecutionStatus::Completed).await;
    assert_eq!(last_event(&turn).await["usage"]["estimated"], true);
    let steps = store.step_usage(&access, "plain", &turn.execution, 1).await;
    assert!(usage().await.estimated && steps.unwrap()[0].spent.usage.estimated);
    assert_eq!(by_agent(store, None).await[0].estimated_calls, 1);
}

/// A worker dies while the provider makes its response in the background, and another worker reads the response.
pub async fn a_response_that_is_read_again_settles_one_reservation(backend: &impl Backend) {
    let turn = begun_with(backend.open().await, "m", of_tokens(1000)).await;
    let (store, step) = (&turn.store, turn.step(0));
    let first = claim(store, &step).await;
    let reserved = store.reserve_call(&step, first, tokens(600), None).await;
    assert_eq!(reserved.unwrap(), Reservation::Made);
    let response = BackgroundResponse {
        provider: "p".into(),
        model: "m1".into(),
        id: "resp_1".into(),
    };
    assert!(store.note_response(&step, first, &response).await.unwrap());
    for _ in 0..2 {
        match store.claim_step(&step, None).await.unwrap() {
            StepClaim::Call(call) => assert_eq!(call.background.as_ref(), Some(&response)),
            other @ (StepClaim::Stored(_) | StepClaim::Cancelled(_)) => panic!("{other:?}"),
        }
    }
    for _ in 0..2 {
        store.complete_step(&step, reply()).await.unwrap();
    }
    assert_eq!(cut(store).await, [], "the response was never cut");
    assert_eq!(by_agent(store, None).await[0].calls, 1);
    let left = used_up(store, &turn.step(1)).await;
    assert_eq!((left.taken, left.reserved), (110, 0));
}

/// A dead worker leaves no note of its call.
pub async fn a_call_of_a_dead_worker_counts_without_a_budget(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "plain", "m").await;
    let (store, step) = (&turn.store, turn.step(0));
    let bytes = "say m".len() + "[]".len() * 2 + agent().instructions.len();
    let each = bytes as u64 / ASSUMED_BYTES_PER_TOKEN + u64::from(ASSUMED_OUTPUT_TOKENS);
    claim(store, &step).await;
    assert_eq!(cut(store).await, []);
    for calls in 1..3 {
        claim(store, &step).await;
        assert_eq!(cut(store).await, [("/m1".into(), calls, calls * each)]);
    }
    turn.asks(0, "", &[Effect::Read]).await;
    turn.runs(0, 0).await;
    claim(store, &turn.step(1)).await;
    assert_eq!(cut(store).await[0].1, 2, "the step before has a reply");
    for _ in 0..2 {
        turn.end(1, AgentExecutionStatus::Cancelled).await;
        assert_eq!(cut(store).await[0].1, 3, "the end counts the call");
    }
    assert_eq!(last_event(&turn).await["cut_calls"], 3);
    assert_eq!(cut_of_conversation(&turn).await.calls, 3);
    let next = Turn::begun(turn.store.clone(), "gone", "m").await;
    claim(store, &next.step(0)).await;
    let access = Access::tenant("default");
    let deleted = store.delete_conversation(&access, "gone", None).await;
    assert!(deleted.unwrap());
    assert_eq!(cut(store).await[0].1, 4, "a deletion counts the open call");
}
