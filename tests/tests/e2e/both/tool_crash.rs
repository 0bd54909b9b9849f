//! Crashes in tools (invariant 6, done once). The worker is killed with kill -9 at every point of a tool execution, for
//! every effect, with four calls at once. The same is done with a reset of the workflow, and with completions that
//! never reach the engine.

use std::collections::HashMap;

use everturn_tests::{
    model::{Model, Reply, Request},
    proxy::{Direction, Proxy},
    stack::Stack,
};
use futures::future::join_all;
use serde_json::{Value, json};

const PLACES: [&str; 5] = [
    "tool.before_claim",
    "tool.after_claim",
    "tool.during",
    "tool.before_record",
    "tool.after_record",
];
const TOOLS: [&str; 3] = ["test_read", "test_idempotent", "test_once"];
/// The tool that runs as a local activity. It must not run twice either.
const INLINE: &str = "test_inline";
const CALLS: usize = 4;
const FAILURE: &str = "no such account";

/// An agent with the test tools, and a worker with more slots than by default. A tool execution that is held sends no
/// heartbeats, so the engine tries it again, and each try takes a slot.
const AGENT: &str = r#"
tools = ["test_once", "test_read", "test_idempotent", "test_inline"]

[worker]
max_concurrent_activities = 1000
"#;

/// Script of a model that makes four calls at once of the tool that the message names. The last one fails with a known
/// error.
fn four_calls(request: &Request) -> Reply {
    if request.results_since_user() > 0 {
        return Reply::text("Done.");
    }
    let tool = request.last("user");
    let reply = (1..CALLS).fold(Reply::text("Four."), |reply, _| {
        reply.call(&tool, &json!({"effect": true}))
    });
    reply.call(&tool, &json!({"effect": true, "fail": FAILURE}))
}

/// A turn whose calls were held at a place when the worker died.
struct Case {
    place: &'static str,
    tool: &'static str,
    conversation: String,
}

impl Case {
    async fn ask(stack: &Stack, place: &'static str, tool: &'static str) -> Self {
        Self {
            place,
            tool,
            conversation: stack.ask_held(place, tool).await,
        }
    }

    fn is_once(&self) -> bool {
        self.tool == "test_once" || self.tool == INLINE
    }

    /// Returns whether the outcome is unknown: only of a `once` tool that was claimed and whose end was not recorded.
    fn is_unknown(&self) -> bool {
        self.is_once() && !matches!(self.place, "tool.before_claim" | "tool.after_record")
    }

    /// Returns whether a tool execution may have had its effect this many times.
    fn may_have_effects(&self, count: usize) -> bool {
        match (self.is_once(), self.place) {
            (true, "tool.after_claim") => count == 0,
            (true, _) | (_, "tool.after_record") => count == 1,
            // It was tried again. How often depends on how long it took until the others were held.
            _ => count >= 1,
        }
    }

    /// Asserts that the turn went on, and that each call was done and observed as its effect demands.
    fn judge(&self, events: &[Value], effects: &HashMap<String, usize>) {
        let what = format!(
            "{} killed at {} ({})",
            self.tool, self.place, self.conversation
        );
        let of = |kind: &str| -> Vec<&Value> {
            events
                .iter()
                .filter(|event| event["event_type"] == kind)
                .map(|event| &event["event_data"])
                .collect()
        };
        assert_eq!(events.last().unwrap()["event_type"], "complete", "{what}");
        assert_eq!(of("assistant_message")[0]["content"], "Done.", "{what}");
        let (acts, observes) = (of("act"), of("observe"));
        assert_eq!((acts.len(), observes.len()), (CALLS, CALLS), "{what}");
        for (index, act) in acts.into_iter().enumerate() {
            let id = &act["execution_id"];
            let count = effects
                .get(id.as_str().unwrap())
                .copied()
                .unwrap_or_default();
            assert!(
                self.may_have_effects(count),
                "{what}: call {index} had {count} effects"
            );
            let observe = observes
                .iter()
                .find(|observe| &observe["execution_id"] == id)
                .unwrap();
            let error = observe["result"]["error"].as_str().unwrap_or_default();
            assert_eq!(
                error.contains("may or may not"),
                self.is_unknown(),
                "{what}: call {index}: {observe}"
            );
            assert_eq!(
                observe["outcome_unknown"] == true,
                self.is_unknown(),
                "{what}: call {index}: {observe}"
            );
            if !self.is_unknown() {
                assert_eq!(
                    error,
                    if index + 1 == CALLS { FAILURE } else { "" },
                    "{what}: call {index}"
                );
            }
        }
    }
}

async fn begin(stack: &Stack, places: &[&'static str], tools: &[&'static str]) -> Vec<Case> {
    let pairs = places
        .iter()
        .flat_map(|place| tools.iter().map(move |tool| (*place, *tool)));
    let cases = join_all(pairs.map(|(place, tool)| Case::ask(stack, place, tool))).await;
    join_all(
        cases
            .iter()
            .map(|case| stack.held(&case.conversation, CALLS)),
    )
    .await;
    cases
}

async fn judge(stack: &Stack, cases: &[Case]) {
    let ended = join_all(cases.iter().map(|case| stack.ended(&case.conversation, 1))).await;
    let mut effects = HashMap::new();
    for execution_id in stack.effects() {
        *effects.entry(execution_id).or_default() += 1;
    }
    for (case, events) in cases.iter().zip(ended) {
        case.judge(&events, &effects);
    }
}

/// Kills the worker while calls of these tools are held at every place.
async fn survives_a_kill(tools: &[&'static str]) {
    let stack = Stack::with_agent(Model::start(four_calls).await, AGENT).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_holding(&[]);
    let cases = begin(&stack, &PLACES, tools).await;
    worker.kill().await;
    let _next = stack.worker();
    judge(&stack, &cases).await;
}

#[tokio::test]
async fn a_killed_worker_does_nothing_twice_and_forgets_nothing() {
    survives_a_kill(&TOOLS).await;
}

/// A local activity ends after twelve seconds, held or not. So these calls are not among the many of the test above.
#[tokio::test]
async fn nor_with_inline_tools() {
    survives_a_kill(&[INLINE]).await;
}

#[tokio::test]
async fn nor_does_a_reset_after_the_kill() {
    let stack = Stack::with_agent(Model::start(four_calls).await, AGENT).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_holding(&[]);
    let cases = begin(&stack, &PLACES, &TOOLS).await;
    worker.kill().await;
    join_all(cases.iter().map(|case| stack.reset(&case.conversation))).await;
    let _next = stack.worker();
    judge(&stack, &cases).await;
}

#[tokio::test]
async fn a_lost_completion_changes_nothing() {
    let stack = Stack::with_agent(Model::start(four_calls).await, AGENT).await;
    let _gateway = stack.gateway().await;
    let proxy = Proxy::to(stack.temporal.port()).await;
    let _worker =
        stack.worker_holding(&[("TEMPORAL_ADDRESS", &format!("127.0.0.1:{}", proxy.port()))]);
    for direction in [Direction::Requests, Direction::Answers] {
        let cases = begin(&stack, &["tool.after_record"], &TOOLS).await;
        proxy.lose(direction);
        for case in &cases {
            stack.let_go(&case.conversation);
        }
        everturn_tests::wait::until("something is lost", || async {
            (proxy.lost(direction) > 0).then_some(())
        })
        .await;
        proxy.cut();
        judge(&stack, &cases).await;
    }
}
