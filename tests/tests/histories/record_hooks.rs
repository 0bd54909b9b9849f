//! Records the histories of a turn whose agent has hooks before and after it, and of the hooks after it.

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};

use super::record::{record, record_workflow};

const AGENT: &str = "tools = []\n[agents.default.hooks]\nbefore_turn = [\"test_read\"]\nafter_turn = [\"test_once\"]\n";

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_histories_of_hooks_when_asked() {
    let stack = Stack::with_agent(
        Model::start(|_: &Request| Reply::text("Done.")).await,
        AGENT,
    )
    .await;
    let _running = stack.start().await;
    let (conversation, message) = stack.ask("hello").await;
    stack.ended(&conversation, 1).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    record(&stack, "hooks", &conversation, None).await;
    let agent_execution = ids::root_agent_execution_id(&conversation, &message);
    let id = ids::after_turn_workflow_id(&conversation, &agent_execution);
    stack
        .temporal
        .json(&["workflow", "result", "--workflow-id", &id])
        .await;
    record_workflow(&stack, "after-turn", id, None).await;
}
