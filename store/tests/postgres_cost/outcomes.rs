//! Counts the round trips of a person's settling of an outcome.

use everturn_proto::{
    Json,
    words::{AgentExecutionStatus, AuditAction, AuditTargetKind, Effect, ToolOutcome},
};
use everturn_store::{OutsideTools, PersonsOutcome, SettledOutcome, ToolClaims, ToolEnd};

use crate::{
    costs::Costs,
    fixture::{Turn, operator_entry, tenant},
    round_trips::watched,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settling_an_outcome() {
    let (line, store) = watched().await;
    let mut costs = Costs::new(&line);
    for id in ["warm", "c"] {
        costs.measured.clear();
        let turn = Turn::begun(store.clone(), id, "m").await;
        turn.asks(0, "Paying.", &[Effect::Once]).await;
        store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
        let end = ToolEnd::unknown("The worker died.", 7);
        store.finish_tool(&turn.tool(0, 0), end).await.unwrap();
        turn.observe(0, 0, "").await;
        turn.complete(1, "Who knows?", &[]).await;
        turn.end(1, AgentExecutionStatus::Completed).await;
        let execution_id = turn.execution_id(0, 0);
        let (action, kind) = (AuditAction::OutcomeSettled, AuditTargetKind::ToolExecution);
        let entry = operator_entry(Some("default"), action, kind, &execution_id);
        let access = tenant();
        let outcome = PersonsOutcome {
            execution_id,
            outcome: ToolOutcome::Happened,
            result: Some(Json::of(&7)),
            comment: String::new(),
            settled_by: "ann".into(),
        };
        for name in ["settle_outcome", "settle_outcome, repeated"] {
            let settled = store.settle_outcome(&access, id, &outcome, &entry);
            let settled = costs.of(name, settled).await.unwrap();
            assert!(matches!(settled, SettledOutcome::Settled(_)));
        }
    }
    let expected = [("settle_outcome", 13), ("settle_outcome, repeated", 7)];
    assert_eq!(costs.measured, expected);
}
