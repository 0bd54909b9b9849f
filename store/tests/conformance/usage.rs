//! Usage of tenants: the sums by agent, and the calls that were cut.

use everturn_proto::{
    money::{ASSUMED_BYTES_PER_TOKEN, ASSUMED_OUTPUT_TOKENS},
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{
    CutCall, ModelCalls, StepClaim, StepClaims, StepKey, TenantUsage, UsageBy, UsageDay, UsageQuery,
};

use super::{
    Backend,
    budgets::{reply, tokens},
    fixture::{Turn, agent},
};

async fn claim<S: StepClaims>(store: &S, step: &StepKey) -> u32 {
    match store.claim_step(step, None).await.unwrap() {
        StepClaim::Call(call) => call.generation,
        stored @ StepClaim::Stored(_) => panic!("{stored:?}"),
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
}
