//! Alerts on models, and on turns that fail.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use everturn_tests::model::{Model, Reply, Request};
use futures::future::join_all;
use serde_json::json;

use super::watched::Watched;

/// Longer than a model may take to begin, as the alert has it.
const SLOW: Duration = Duration::from_secs(31);

/// An agent whose turns have one step.
const ONE_STEP: &str = r#"
[agents.one_step]
provider = "scripted"
model = "scripted"
tools = ["test_read"]
max_steps = 1
owner = "Orders"
"#;

fn scripted() -> impl Fn(&Request) -> Reply {
    let failed = Mutex::new(HashSet::new());
    move |request| {
        let said = request.last("user");
        match said.as_str() {
            "a wrong key" => Reply::error(401, "invalid_api_key"),
            "a tool" => Reply::text("").call("test_read", &json!({})),
            "slowly" => Reply::pieces(vec!["At last.".to_owned()], SLOW),
            // The first call of each turn fails.
            said if said.starts_with("again") => {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.insert(said.to_owned()) {
                    Reply::error(503, "unavailable")
                } else {
                    Reply::text("Now it works.")
                }
            }
            _ => Reply::text("Hello."),
        }
    }
}

#[tokio::test]
async fn a_model_refuses() {
    let mut watched = Watched::of(Model::start(scripted()).await, "", 1).await;
    watched.turns("a wrong key", 1).await;
    watched.is_well().await;
    watched.turns("a wrong key", 3).await;
    let refused = ["everturn_model_calls_total", "llm_unauthorized"];
    watched.counted(&refused, 4.0).await;
    watched.minutes(1).await;
    let fires = watched.only_fires(&["EverturnModelRefuses"]).await;
    fires[0]
        .has("result", "llm_unauthorized")
        .has("model", "scripted");
}

#[tokio::test]
async fn a_model_fails_again_and_again() {
    let mut watched = Watched::of(Model::start(scripted()).await, "", 1).await;
    watched.turns("again 0", 1).await;
    watched.is_well().await;
    let said: Vec<_> = (1..=8).map(|number| format!("again {number}")).collect();
    join_all(said.iter().map(|said| watched.turns(said, 1))).await;
    watched
        .counted(&["everturn_model_calls_total", "llm_unavailable"], 9.0)
        .await;
    watched.minutes(8).await;
    let fires = watched.only_fires(&["EverturnModelFails"]).await;
    fires[0]
        .has("result", "llm_unavailable")
        .has("provider", "scripted");
}

#[tokio::test]
async fn a_model_is_slow_to_begin() {
    let mut watched = Watched::of(Model::start(scripted()).await, "", 1).await;
    watched.is_well().await;
    watched.turns("slowly", 12).await;
    watched.minutes(8).await;
    let fires = watched.only_fires(&["EverturnModelSlow"]).await;
    fires[0].has("model", "scripted");
}

#[tokio::test]
async fn turns_fail() {
    let mut watched = Watched::of(Model::start(scripted()).await, ONE_STEP, 1).await;
    watched.turns_of(Some("one_step"), "a tool", 1).await;
    watched.is_well().await;
    watched.turns_of(Some("one_step"), "a tool", 8).await;
    watched
        .counted(&["everturn_agents_ended_total", "step_limit"], 9.0)
        .await;
    watched.minutes(8).await;
    let alerts = ["EverturnTurnsFail", "EverturnAgentFails"];
    let fires = watched.only_fires(&alerts).await;
    fires[0].has("code", "step_limit");
    fires[1].has("agent", "one_step").has("owner", "Orders");
}
