//! Alerts on turns that lose their workflows.

use everturn_tests::{
    model::{Model, Reply},
    wait,
};
use futures::future::join_all;
use serde_json::json;

use super::watched::Watched;

/// What has stalled for half a second is looked at.
const QUICK: &str = "[reconciler]\nevery = \"100ms\"\ngrace = \"500ms\"\nagain = \"500ms\"\n";

/// A system whose model can begin turns that do not end.
async fn with_long_turns() -> Watched {
    let model = Model::start(|request| match request.last("user").as_str() {
        "for long" => Reply::text("").call("test_read", &json!({"sleep_ms": 600_000})),
        _ => Reply::text("Hello."),
    });
    Watched::of(model.await, QUICK, 1).await
}

async fn long_turn(watched: &Watched) -> String {
    let (conversation, _) = watched.stack.ask("for long").await;
    watched.stack.saw(&conversation, "act").await;
    conversation
}

#[tokio::test]
async fn workflows_are_lost() {
    let mut watched = with_long_turns().await;
    watched.is_well().await;
    let conversations = join_all((0..12).map(|_| long_turn(&watched))).await;
    for conversation in &conversations {
        watched.stack.terminate(conversation).await;
    }
    let started = ["everturn_reconciler_total", "did=\"started\""];
    watched.counted(&started, 12.0).await;
    watched.minutes(1).await;
    watched.only_fires(&["EverturnWorkflowsStartedAgain"]).await;
}

#[tokio::test]
async fn a_turn_is_given_up() {
    let mut watched = with_long_turns().await;
    watched.is_well().await;
    let conversation = long_turn(&watched).await;
    // Whoever terminates a workflow does so again with each that is started for the turn.
    let given_up = ["everturn_reconciler_total", "did=\"failed\""];
    let terminated = async {
        loop {
            watched.stack.run_id(&conversation).await;
            watched.stack.terminate(&conversation).await;
        }
    };
    tokio::select! {
        () = watched.counted(&given_up, 1.0) => {}
        () = terminated => {}
    }
    watched.minutes(1).await;
    watched.only_fires(&["EverturnTurnsGivenUp"]).await;
    wait::until("the turn has ended", || async {
        let types = watched.stack.event_types(&conversation).await;
        types.contains(&"error".to_owned()).then_some(())
    })
    .await;
}
