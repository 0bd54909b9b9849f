//! Budgets: what a call reserves, what its answer settles, and the sums of tenants.

use everturn_proto::{
    event::Usage,
    ids,
    turn::{AgentDefinition, Budget, LlmCompleteState, ToolCall},
    words::{AgentExecutionStatus, Effect, ToolKind},
};
use everturn_store::{
    Access, AgentExecutions, BeginTurn, BudgetLimit, ClaimedCall, DayBudget, Estimate, Exhausted,
    ModelCalls, OnUnknownAgent, Reservation, Retention, StepClaim, StepClaims, StepKey, StoreError,
    TenantUsage, Turns, UsageCursor, UsageDay, UsageQuery,
};

use super::{
    Backend,
    delegation::agents,
    fixture::{Turn, TurnStore, agent, json, state},
};

/// More than any budget here has.
const TOO_MUCH: Estimate = Estimate {
    tokens: 1_000_000,
    nano_usd: 1_000_000,
};

pub fn tokens(tokens: u64) -> Estimate {
    Estimate {
        tokens,
        nano_usd: 0,
    }
}

pub fn of_tokens(tokens: u64) -> Budget {
    Budget {
        tokens: Some(tokens),
        ..Budget::default()
    }
}

/// Begins a turn of an agent with this budget.
pub async fn begun_with<S: TurnStore>(store: S, message: &str, budget: Budget) -> Turn<S> {
    let turn = Turn::new(store, "c", message);
    let agent = AgentDefinition {
        budget: Some(budget),
        ..agent()
    };
    begin(&turn, agent, DayBudget::default()).await;
    turn
}

async fn begin<S: TurnStore>(turn: &Turn<S>, agent: AgentDefinition, tenant_budget: DayBudget) {
    let begin = BeginTurn {
        agent,
        tenant_budget,
        ..turn.begin("go")
    };
    turn.store.begin_turn(begin).await.unwrap();
}

/// Claims a step of a turn with a budget, and returns the generation.
async fn claim<S: TurnStore>(store: &S, step: &StepKey) -> u32 {
    match store.claim_step(step, None).await.unwrap() {
        StepClaim::Call(ClaimedCall {
            generation,
            has_budget: true,
            ..
        }) => generation,
        other => panic!("{other:?}"),
    }
}

/// Claims a step, and asks for a part of the budget.
async fn reserve<S: TurnStore>(store: &S, step: &StepKey, most: Estimate) -> Reservation {
    let generation = claim(store, step).await;
    ask(store, step, generation, most).await
}

/// Asks for a part of the budget for a call of the agent's own model.
async fn ask<S: TurnStore>(store: &S, step: &StepKey, call: u32, most: Estimate) -> Reservation {
    let reserved = store.reserve_call(step, call, most, None);
    reserved.await.unwrap()
}

/// Returns the limit that a call does not fit in which takes more than any budget has.
pub async fn used_up<S: TurnStore>(store: &S, step: &StepKey) -> Exhausted {
    match reserve(store, step, TOO_MUCH).await {
        Reservation::Exhausted(exhausted) => exhausted,
        Reservation::Made => panic!("it fits"),
    }
}

/// A reply that took 100 tokens and wrote 10, for 3 nano-USD.
pub fn reply() -> LlmCompleteState {
    LlmCompleteState {
        cost_nano_usd: Some(3),
        provider: "p".into(),
        model: "m1".into(),
        cached_tokens: 60,
        ..state("said", Vec::new())
    }
}

async fn days(store: &impl TenantUsage, tenant: &str) -> Vec<UsageDay> {
    let query = UsageQuery {
        from: "2000-01-01".into(),
        to: "9999-12-31".into(),
        limit: 100,
        ..UsageQuery::default()
    };
    store.usage_days(tenant, &query).await.unwrap()
}

pub async fn a_call_reserves_and_its_answer_settles(backend: &impl Backend) {
    let turn = begun_with(backend.open().await, "m", of_tokens(1000)).await;
    let (store, step) = (&turn.store, turn.step(0));
    let generation = claim(store, &step).await;
    for _ in 0..3 {
        let reserved = ask(store, &step, generation, tokens(600)).await;
        assert_eq!(reserved, Reservation::Made, "it may ask again");
    }
    for _ in 0..2 {
        store.complete_step(&step, reply()).await.unwrap();
    }
    let expected = Exhausted {
        limit: BudgetLimit::Tokens,
        most: 1000,
        taken: 110,
        reserved: 0,
    };
    assert_eq!(used_up(store, &turn.step(1)).await, expected);
    let all = reserve(store, &turn.step(1), tokens(890)).await;
    assert_eq!(all, Reservation::Made, "what is left fits whole");
    let plain = Turn::begun(turn.store.clone(), "plain", "m").await;
    let claimed = plain.store.claim_step(&plain.step(0), None).await.unwrap();
    let StepClaim::Call(ClaimedCall { has_budget, .. }) = claimed else {
        panic!("nothing is stored")
    };
    assert!(!has_budget);
}

pub async fn a_call_that_was_cut_counts_in_full(backend: &impl Backend) {
    let turn = begun_with(backend.open().await, "m", of_tokens(1000)).await;
    let (store, step) = (&turn.store, turn.step(0));
    let first = claim(store, &step).await;
    let reserve = async |generation, most| store.reserve_call(&step, generation, most, None).await;
    assert_eq!(
        reserve(first, tokens(600)).await.unwrap(),
        Reservation::Made
    );
    let second = claim(store, &step).await;
    let late = reserve(first, tokens(1)).await;
    assert!(
        matches!(late, Err(StoreError::Superseded { .. })),
        "{late:?}"
    );
    assert!(matches!(
        reserve(second, tokens(401)).await.unwrap(),
        Reservation::Exhausted(Exhausted {
            taken: 600,
            reserved: 0,
            ..
        })
    ));
    assert_eq!(
        reserve(second, tokens(400)).await.unwrap(),
        Reservation::Made
    );
    store.complete_step(&step, reply()).await.unwrap();
    assert_eq!(used_up(store, &turn.step(1)).await.taken, 600 + 110);
    // The agent has no provider, so the call that was cut has another name than the one that was answered.
    let found = days(store, "default").await;
    let [cut, made] = &found[..] else {
        panic!("{found:?}")
    };
    let calls = |day: &UsageDay| (day.model.clone(), day.calls, day.cut_calls);
    assert_eq!(calls(cut), (Some("/m1".into()), 0, 1));
    assert_eq!((cut.cut_tokens, cut.input_tokens), (600, 0));
    assert_eq!(calls(made), (Some("p/m1".into()), 1, 0));
    assert_eq!((made.input_tokens, made.cached_tokens), (100, 60));
    assert_eq!((made.output_tokens, made.nano_usd), (10, 3));
}

pub async fn a_refused_call_gives_back_what_it_reserved(backend: &impl Backend) {
    let turn = begun_with(backend.open().await, "m", of_tokens(1000)).await;
    let (store, step) = (&turn.store, turn.step(0));
    let first = claim(store, &step).await;
    ask(store, &step, first, tokens(1000)).await;
    for _ in 0..2 {
        store.release_call(&step, first).await.unwrap();
    }
    let second = claim(store, &step).await;
    let again = ask(store, &step, second, tokens(1000)).await;
    assert_eq!(again, Reservation::Made);
    store.release_call(&step, first).await.unwrap();
    let third = claim(store, &step).await;
    let late = ask(store, &step, third, tokens(1)).await;
    let Reservation::Exhausted(exhausted) = late else {
        panic!("the second call was cut, and an older one does not give back what it reserved")
    };
    assert_eq!(exhausted.taken, 1000);
}

pub async fn a_step_counts_once(backend: &impl Backend) {
    let budget = Budget {
        steps: Some(2),
        ..Budget::default()
    };
    let turn = begun_with(backend.open().await, "m", budget).await;
    let store = &turn.store;
    for step in 0..2 {
        for _ in 0..3 {
            let reserved = reserve(store, &turn.step(step), tokens(5)).await;
            assert_eq!(reserved, Reservation::Made, "step {step}");
        }
        store
            .complete_step(&turn.step(step), reply())
            .await
            .unwrap();
    }
    let third = used_up(store, &turn.step(2)).await;
    assert_eq!((third.limit, third.taken), (BudgetLimit::Steps, 2));
}

pub async fn the_end_settles_what_is_reserved(backend: &impl Backend) {
    let budget = Budget {
        conversation_tokens: Some(1000),
        ..Budget::default()
    };
    let turn = begun_with(backend.open().await, "m", budget).await;
    let reserved = reserve(&turn.store, &turn.step(0), tokens(600)).await;
    assert_eq!(reserved, Reservation::Made);
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    turn.end(0, AgentExecutionStatus::Cancelled).await;
    // A worker that was thought dead has its answer now. The end has counted the call already.
    let late = turn.store.complete_step(&turn.step(0), reply()).await;
    assert!(matches!(late, Err(StoreError::Conflict(_))), "{late:?}");
    let next = begun_with(turn.store.clone(), "next", budget).await;
    let left = used_up(&next.store, &next.step(0)).await;
    assert_eq!(left.limit, BudgetLimit::ConversationTokens);
    assert_eq!((left.taken, left.reserved), (600, 0));
    // A turn that another message finds lost.
    let reserved = reserve(&next.store, &next.step(0), tokens(300)).await;
    assert_eq!(reserved, Reservation::Made);
    let last = Turn::new(turn.store.clone(), "c", "last");
    let agent = AgentDefinition {
        budget: Some(budget),
        ..agent()
    };
    let mut begin = BeginTurn {
        agent,
        ..last.begin("go")
    };
    while let everturn_store::TurnStart::AskAgain { epoch } =
        last.store.begin_turn(begin.clone()).await.unwrap()
    {
        begin.epoch = Some(epoch);
    }
    let left = used_up(&last.store, &last.step(0)).await;
    assert_eq!((left.taken, left.reserved), (900, 0));
}

/// Begins a turn with eight sub-agents, and returns it with these.
async fn tree<B: Backend>(backend: &B, budget: Budget) -> (Turn<B::Store>, Vec<Turn<B::Store>>) {
    let root = Turn::new(backend.open().await, "c", "m");
    let agent = AgentDefinition {
        max_sub_agents: 8,
        budget: Some(budget),
        ..agents()["a"].clone()
    };
    begin(&root, agent, DayBudget::default()).await;
    let call = |index| ToolCall {
        tool_name: "delegate".into(),
        kind: ToolKind::Delegate.into(),
        tool_input: Some(json(r#"{"agent": "b", "task": "look"}"#)),
        ..root.call(0, index, Effect::Idempotent)
    };
    let asked = LlmCompleteState {
        tool_calls: (0..8).map(call).collect(),
        finish: "tool_calls".into(),
        ..reply()
    };
    root.store
        .complete_step(&root.step(0), asked)
        .await
        .unwrap();
    root.thought(0).await;
    let mut subs = Vec::new();
    for index in 0..8 {
        let begun = root
            .store
            .begin_sub_agent(&root.tool(0, index), &agents(), OnUnknownAgent::Begin)
            .await;
        assert_eq!(begun.unwrap().status, AgentExecutionStatus::Running);
        let call = root.execution_id(0, index);
        subs.push(Turn {
            execution: ids::sub_agent_execution_id(&root.conversation, &call),
            ..root.clone()
        });
    }
    (root, subs)
}

pub async fn calls_at_once_never_take_more_than_there_is(backend: &impl Backend) {
    let (root, subs) = tree(backend, of_tokens(1110)).await;
    let handles = [root.store.clone(), backend.open().await];
    for round in 0..3 {
        let tasks: Vec<_> = subs
            .iter()
            .enumerate()
            .map(|(number, sub)| {
                let (store, step) = (handles[number % 2].clone(), sub.step(round));
                tokio::spawn(async move {
                    let generation = claim(&store, &step).await;
                    let call = store.reserve_call(&step, generation, tokens(190), None);
                    let is_made = call.await.unwrap() == Reservation::Made;
                    (store, step, is_made)
                })
            })
            .collect();
        let mut made = Vec::new();
        for task in tasks {
            let (store, step, is_made) = task.await.unwrap();
            if is_made {
                made.push((store, step));
            }
        }
        // 110 tokens were taken by the root, and in each round each call that was let through takes as many.
        let expected = [5, 2, 1][round as usize];
        assert_eq!(made.len(), expected, "round {round}");
        let ends: Vec<_> = made
            .into_iter()
            .map(|(store, step)| {
                tokio::spawn(async move { store.complete_step(&step, reply()).await.unwrap() })
            })
            .collect();
        for end in ends {
            end.await.unwrap();
        }
    }
    let left = used_up(&root.store, &root.step(1)).await;
    assert_eq!((left.taken, left.reserved), (110 * (1 + 5 + 2 + 1), 0));
}

pub async fn an_end_tells_what_the_tree_took(backend: &impl Backend) {
    let (root, subs) = tree(backend, of_tokens(100_000)).await;
    for sub in &subs[..2] {
        sub.store
            .complete_step(&sub.step(0), reply())
            .await
            .unwrap();
        sub.end(0, AgentExecutionStatus::Completed).await;
    }
    let ends = root.events().await;
    let ends = ends.iter().filter(|event| event.event_type == "complete");
    for end in ends {
        let sub = end.event_data.as_ref().unwrap().to_value();
        assert_eq!(sub["usage"]["input_tokens"], 100, "{sub}");
        assert_eq!(sub["cost_usd"], "0.000000003", "{sub}");
    }
    backend
        .run("UPDATE execution_checkpoints SET cost_nano = NULL, cached_tokens = 0 WHERE step_number = 0")
        .await;
    root.end(1, AgentExecutionStatus::Cancelled).await;
    let events = root.events().await;
    let last = events
        .last()
        .unwrap()
        .event_data
        .as_ref()
        .unwrap()
        .to_value();
    assert_eq!(last["usage"]["input_tokens"], 300, "{last}");
    assert_eq!(
        last["usage"]["cached_tokens"], 0,
        "rows without cached tokens"
    );
    assert_eq!(last.get("cost_usd"), None, "{last}");
    let access = Access::tenant("default");
    let found = root.store.agent_execution(&access, "c", &root.execution);
    let spent = found.await.unwrap().unwrap().spent;
    let expected = Usage {
        input_tokens: 100,
        output_tokens: 10,
        ..Usage::default()
    };
    assert_eq!((spent.usage, spent.nano_usd), (expected, None));
    let access = Access::tenant("default");
    let steps = root.store.step_usage(&access, "c", &subs[0].execution, 10);
    let steps = steps.await.unwrap();
    assert_eq!(
        (steps.len(), steps[0].step, steps[0].model.as_deref()),
        (1, 0, Some("m1"))
    );
    let others = Access::tenant("other");
    let steps = root.store.step_usage(&others, "c", &subs[0].execution, 10);
    assert_eq!(steps.await.unwrap(), []);
}

pub async fn a_tenant_has_a_budget_of_the_day(backend: &impl Backend) {
    let store = backend.open().await;
    let day = DayBudget {
        tokens: Some(200),
        nano_usd: Some(1000),
    };
    let begun = async |conversation: &str, tenant_id: &str| {
        let turn = Turn::new(store.clone(), conversation, "m");
        let begin = BeginTurn {
            tenant_id: tenant_id.into(),
            tenant_budget: day,
            ..turn.begin("go")
        };
        turn.store.begin_turn(begin).await.unwrap();
        turn
    };
    let (one, two) = (begun("a~one", "a").await, begun("a~two", "a").await);
    let other = begun("b~other", "b").await;
    let reserved = async |turn: &Turn<_>, step, most| {
        let generation = claim(&store, &turn.step(step)).await;
        let call = Estimate {
            tokens: most,
            nano_usd: 1,
        };
        store
            .reserve_call(&turn.step(step), generation, call, None)
            .await
            .unwrap()
    };
    assert_eq!(reserved(&one, 0, 150).await, Reservation::Made);
    store.complete_step(&one.step(0), reply()).await.unwrap();
    let Reservation::Exhausted(exhausted) = reserved(&two, 0, 91).await else {
        panic!("the day has 90 tokens left")
    };
    assert_eq!(
        (exhausted.limit, exhausted.taken),
        (BudgetLimit::DayTokens, 110)
    );
    assert_eq!(
        reserved(&other, 0, 200).await,
        Reservation::Made,
        "another tenant"
    );
    // The next day begins: what was taken until now was taken yesterday.
    backend
        .run("UPDATE usage_days SET day = '2001-01-01'")
        .await;
    assert_eq!(reserved(&two, 0, 200).await, Reservation::Made);
    store.complete_step(&two.step(0), reply()).await.unwrap();
    assert_are_paged(&store).await;
}

/// Asserts that the sums of tenant `a`, one call on each of two days, are paged and removed by day.
async fn assert_are_paged(store: &impl TenantUsage) {
    let days = days(store, "a").await;
    let found: Vec<_> = days
        .iter()
        .map(|day| (day.calls, day.output_tokens))
        .collect();
    assert_eq!(found, [(1, 10), (1, 10)], "{days:?}");
    let page = async |after| {
        let query = UsageQuery {
            from: "2001-01-01".into(),
            to: "2001-01-01".into(),
            after,
            limit: 1,
            ..UsageQuery::default()
        };
        store.usage_days("a", &query).await.unwrap()
    };
    let first = page(None).await;
    assert_eq!(first, days[..1]);
    let place = UsageCursor {
        day: first[0].day.clone(),
        name: first[0].name().to_owned(),
    };
    assert_eq!(page(Some(place)).await, []);
    assert_eq!(store.forget_usage("2001-01-02").await.unwrap(), 1);
    assert_eq!(self::days(store, "a").await, days[1..]);
}

pub async fn the_sums_of_a_tenant_outlive_its_conversations(backend: &impl Backend) {
    let turn = begun_with(backend.open().await, "m", of_tokens(1000)).await;
    turn.store
        .complete_step(&turn.step(0), reply())
        .await
        .unwrap();
    turn.end(0, AgentExecutionStatus::Completed).await;
    let later = chrono::Utc::now() + chrono::Duration::days(1);
    let removed = turn.store.remove_expired(later, None, 10).await.unwrap();
    assert_eq!(removed.removed.conversations, 1);
    assert_eq!(days(&turn.store, "default").await.len(), 1);
    let again = begun_with(turn.store.clone(), "m", of_tokens(1000)).await;
    assert_eq!(used_up(&again.store, &again.step(0)).await.taken, 0);
}
