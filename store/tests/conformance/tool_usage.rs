//! Usage of tools: the sums by day and tool.

use everturn_proto::words::{AgentExecutionStatus, Effect};
use everturn_store::{
    StepClaims, TenantUsage, TenantUsageCursor, ToolClaims, ToolUsageDay, ToolUsageQuery,
    UsageCursor,
};

use super::{
    Backend,
    fixture::{Turn, agent, state, tool_end},
};

async fn of_agent<S: TenantUsage>(store: &S, agent: Option<&str>) -> Vec<(String, u64, u64, u64)> {
    let query = ToolUsageQuery {
        agent: agent.map(Into::into),
        ..every()
    };
    let days = store.tool_usage(&query).await.unwrap();
    let row = |day: ToolUsageDay| (day.tool, day.calls, day.failed_calls, day.duration_ms);
    days.into_iter().map(row).collect()
}

fn every() -> ToolUsageQuery {
    ToolUsageQuery {
        tenant_id: Some("default".into()),
        from: "2000-01-01".into(),
        to: "9999-12-31".into(),
        limit: 10,
        ..ToolUsageQuery::default()
    }
}

/// Ends a turn that has called `search` and `fetch`. The call of `fetch` has no result yet when the turn is cancelled.
async fn ends<B: Backend>(backend: &B, message: &str, status: AgentExecutionStatus) -> B::Store {
    let turn = Turn::begun(backend.open().await, message, message).await;
    let mut calls = vec![turn.call(0, 0, Effect::Read), turn.call(0, 1, Effect::Read)];
    calls[1].tool_name = "fetch".into();
    let asked = turn
        .store
        .complete_step(&turn.step(0), state("", calls))
        .await;
    asked.unwrap();
    turn.thought(0).await;
    turn.runs(0, 0).await;
    if status == AgentExecutionStatus::Completed {
        turn.store.claim_tool(&turn.tool(0, 1), "a").await.unwrap();
        let mut end = tool_end("\"away\"");
        (end.is_error, end.duration_ms) = (true, 5);
        let ended = turn.store.finish_tool(&turn.tool(0, 1), end).await;
        ended.unwrap();
        turn.observe(0, 1, "").await;
        turn.complete(1, "answer", &[]).await;
        assert_eq!(of_agent(&turn.store, None).await, [], "the end counts");
    }
    for _ in 0..2 {
        turn.end(1, status.clone()).await;
    }
    turn.store
}

pub async fn tool_calls_count_at_the_end(backend: &impl Backend) {
    let took = u64::from(tool_end("1").duration_ms);
    let store = ends(backend, "done", AgentExecutionStatus::Completed).await;
    let done = [("fetch".into(), 1, 1, 5), ("search".into(), 1, 0, took)];
    assert_eq!(of_agent(&store, None).await, done);
    ends(backend, "stopped", AgentExecutionStatus::Cancelled).await;
    let both = [("fetch".into(), 2, 2, 5), ("search".into(), 2, 0, 2 * took)];
    assert_eq!(of_agent(&store, None).await, both);
    assert_eq!(of_agent(&store, Some(&agent().name)).await, both);
    assert_eq!(of_agent(&store, Some("another")).await, []);
}

pub async fn the_sums_of_tools_are_paged(backend: &impl Backend) {
    let store = backend.open().await;
    backend
        .run(
            "INSERT INTO tool_usage_days VALUES ('a', '2026-11-29', 'x', 'one', 1, 1, 0, 2), \
             ('a', '2026-11-30', 'x', 'one', 1, 2, 1, 2), ('a', '2026-11-30', 'x', 'two', 2, 4, 1, 2), \
             ('a', '2026-11-30', 'y', 'one', 1, 8, 0, 2), ('b', '2026-11-30', 'x', 'one', 1, 16, 0, 2)",
        )
        .await;
    let calls = async |query: &ToolUsageQuery| {
        let rows = store.tool_usage(query).await.unwrap();
        rows.iter().map(|row| row.calls).collect::<Vec<_>>()
    };
    let mut query = ToolUsageQuery {
        tenant_id: None,
        ..every()
    };
    assert_eq!(calls(&query).await, [1, 6, 8, 16]);
    query.limit = 2;
    assert_eq!(calls(&query).await, [1, 6]);
    query.after = Some(TenantUsageCursor {
        tenant_id: "a".into(),
        of_tenant: UsageCursor {
            day: "2026-11-30".into(),
            name: "x".into(),
        },
    });
    assert_eq!(calls(&query).await, [8, 16]);
    query.tenant_id = Some("a".into());
    assert_eq!(calls(&query).await, [8]);
    query.after = None;
    query.from = "2026-11-30".into();
    assert_eq!(calls(&query).await, [6, 8]);
    query.to = "2026-11-29".into();
    assert_eq!(calls(&query).await, [0; 0]);
    assert_eq!(store.forget_usage("2026-11-30").await.unwrap(), 1);
    query.from = String::new();
    assert_eq!(calls(&query).await, [0; 0]);
}
