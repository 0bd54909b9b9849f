//! Records the history of a turn whose tools save their observes themselves.

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

use super::record::turn;

fn script(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I need three tools.")
            .call("test_read", &json!({}))
            .call("test_once", &json!({}))
            .call("calculate", &json!({"expression": "21 * 2"})),
        _ => Reply::text("Done."),
    }
}

#[tokio::test]
#[ignore = "records histories: make histories"]
async fn record_a_history_of_tools_that_are_observed_when_asked() {
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    turn(&stack, "observed-by-tools", "use three tools").await;
}
