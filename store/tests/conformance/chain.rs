//! The chain of an agent's models: whoever calls a step again knows where it is, and readers are told once.

use everturn_proto::{event::ModelFallback, words::AgentExecutionStatus};
use everturn_store::{
    Access, AgentExecutions, BackgroundResponse, ChainPosition, ClaimedCall, DayBudget, Estimate,
    FailedCall, ModelCalls, NotedFailure, Refusals, Reservation, StepClaim, StepClaims,
    TenantUsage, Turns, UsageQuery, WaitingCall,
};
use serde_json::json;

use super::{
    Backend,
    fixture::{Turn, TurnStore, tenant},
};

/// The first model, after so many failures.
fn failed(failures: u32, calls: u32) -> FailedCall {
    FailedCall {
        chain: ChainPosition {
            failures,
            ..ChainPosition::default()
        },
        calls,
        fallback: None,
    }
}

/// The first model is given up.
fn fallback(turn: &Turn<impl Sized>) -> FailedCall {
    FailedCall {
        chain: ChainPosition {
            position: 1,
            failures: 0,
            given_up: vec![0],
            ..ChainPosition::default()
        },
        calls: 1,
        fallback: Some(ModelFallback {
            agent_execution_id: turn.execution.clone(),
            step: 0,
            from: "p/first".into(),
            to: "p/second".into(),
            code: "llm_unavailable".into(),
            message: "It was away.".into(),
        }),
    }
}

/// Claims a step, and returns the generation, the number of calls, and the place.
async fn claim(turn: &Turn<impl TurnStore>, step: u32) -> (u32, u32, Option<ChainPosition>) {
    let claim = turn.store.claim_step(&turn.step(step), None).await;
    let StepClaim::Call(ClaimedCall {
        generation,
        calls,
        chain,
        ..
    }) = claim.unwrap()
    else {
        panic!("nothing is stored")
    };
    (generation, calls, chain)
}

async fn note(turn: &Turn<impl TurnStore>, generation: u32, failed: &FailedCall) -> NotedFailure {
    let step = turn.step(0);
    let noted = turn.store.note_failed_call(&step, generation, failed);
    noted.await.unwrap()
}

pub async fn a_step_knows_its_place_in_the_chain(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let rows = backend.row_count().await;
    assert_eq!(claim(&turn, 0).await, (1, 1, None));
    let once = failed(1, 1);
    assert_eq!(note(&turn, 1, &once).await, NotedFailure::Counted);
    assert_eq!(claim(&turn, 0).await, (2, 2, Some(once.chain)));
    // The provider refused the second call, which does not count. The note may be repeated.
    let twice = failed(2, 1);
    for _ in 0..2 {
        assert_eq!(note(&turn, 2, &twice).await, NotedFailure::Counted);
    }
    assert_eq!(claim(&turn, 0).await, (3, 2, Some(twice.chain)));
    assert_eq!(
        claim(&turn, 1).await,
        (4, 1, None),
        "that is another step's"
    );
    assert_eq!(backend.row_count().await, rows, "it costs no row");
}

pub async fn a_refused_call_waits_until_the_next_call(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let access = tenant();
    let waiting = || turn.store.waiting_call(&access, &turn.conversation);
    claim(&turn, 0).await;
    assert_eq!(waiting().await.unwrap(), None);
    let refused = Refusals {
        count: 1,
        waited_ms: 1500,
        generation: 1,
        code: "llm_overloaded".into(),
        attempt: 2,
        next_try_at: "2026-11-21T12:19:37.118Z".parse().unwrap(),
    };
    let position = ChainPosition {
        refused: Some(refused.clone()),
        ..ChainPosition::default()
    };
    let failed = FailedCall {
        chain: position.clone(),
        calls: 0,
        fallback: None,
    };
    assert_eq!(note(&turn, 1, &failed).await, NotedFailure::Counted);
    let call = WaitingCall {
        agent_execution_id: turn.execution.clone(),
        step: 0,
        refused,
    };
    assert_eq!(waiting().await.unwrap(), Some(call));
    let other = Access::tenant("other");
    let of_other = turn.store.waiting_call(&other, &turn.conversation);
    assert_eq!(of_other.await.unwrap(), None);
    assert_eq!(claim(&turn, 0).await, (2, 1, Some(position)));
    assert_eq!(waiting().await.unwrap(), None);
}

pub async fn a_step_falls_back_once_and_tells_it(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    claim(&turn, 0).await;
    let given_up = fallback(&turn);
    for _ in 0..2 {
        let fell_back = note(&turn, 1, &given_up).await;
        assert_eq!(fell_back, NotedFailure::FellBack { last_sequence: 2 });
    }
    assert_eq!(claim(&turn, 0).await, (2, 2, Some(given_up.chain)));
    let expected = json!({
        "agent_execution_id": turn.execution, "step": 0, "from": "p/first", "to": "p/second",
        "code": "llm_unavailable", "message": "It was away.",
    });
    assert_eq!(turn.data("model_fallback").await, expected);
    turn.complete(0, "said", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    let types = turn.types().await.join(" ");
    assert_eq!(
        types,
        "user_message model_fallback assistant_message complete"
    );
}

pub async fn a_call_that_is_useless_notes_nothing(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    claim(&turn, 0).await;
    claim(&turn, 0).await;
    for useless in [failed(1, 1), fallback(&turn)] {
        assert_eq!(note(&turn, 1, &useless).await, NotedFailure::Superseded);
    }
    assert_eq!(claim(&turn, 0).await, (3, 3, None));
    turn.complete(0, "said", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    for useless in [failed(1, 1), fallback(&turn)] {
        assert_eq!(note(&turn, 3, &useless).await, NotedFailure::Superseded);
    }
    assert!(turn.all_data("model_fallback").await.is_empty());
}

pub async fn what_a_cut_call_took_counts_for_its_model(backend: &impl Backend) {
    let store = backend.open().await;
    let turn = Turn::new(store.clone(), "c", "m");
    let mut begin = turn.begin("go");
    begin.tenant_budget = DayBudget {
        tokens: Some(1_000_000),
        nano_usd: None,
    };
    store.begin_turn(begin).await.unwrap();
    let most = Estimate {
        tokens: 100,
        nano_usd: 7,
    };
    for (generation, other) in [(1, None), (2, Some("p/second")), (3, None)] {
        assert_eq!(claim(&turn, 0).await.0, generation);
        let step = turn.step(0);
        let reserved = store.reserve_call(&step, generation, most, other).await;
        assert_eq!(reserved.unwrap(), Reservation::Made);
    }
    claim(&turn, 0).await;
    let all = UsageQuery {
        from: "2000-01-01".into(),
        to: "9999-12-31".into(),
        limit: 10,
        ..UsageQuery::default()
    };
    let days = store.usage_days("default", &all).await.unwrap();
    let cut: Vec<_> = days
        .iter()
        .map(|day| (day.name(), day.cut_calls, day.cut_tokens))
        .collect();
    assert_eq!(cut, [("/m1", 2, 200), ("p/second", 1, 100)]);
}

/// A step that leaves a model a second time saves no event.
pub async fn a_response_of_a_left_model_is_for_the_next_call_to_cancel(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let response = BackgroundResponse {
        provider: "p".into(),
        model: "first".into(),
        id: "resp_1".into(),
    };
    let step = turn.step(0);
    claim(&turn, 0).await;
    for (generation, event) in [(1, true), (2, false)] {
        let noted = turn.store.note_response(&step, generation, &response).await;
        assert!(noted.unwrap());
        let mut left = fallback(&turn);
        left.chain.left_response = Some(response.clone());
        if !event {
            left.fallback = None;
        }
        assert_ne!(
            note(&turn, generation, &left).await,
            NotedFailure::Superseded
        );
        let claimed = turn.store.claim_step(&step, None).await.unwrap();
        let StepClaim::Call(call) = claimed else {
            panic!("nothing is stored")
        };
        assert_eq!(call.background, None, "no call reads the response");
        assert_eq!(call.chain, Some(left.chain));
    }
}
