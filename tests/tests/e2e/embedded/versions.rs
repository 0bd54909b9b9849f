//! Versions of workers (worker deployments): which version a turn runs on, while old and new workers are there.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use everturn_proto::ids;
use everturn_tests::{
    model::{Model, Reply, Request},
    stack::{Process, Stack},
    wait,
};
use serde_json::{Value, json};

/// A deployment of one test.
struct Deployment<'a> {
    stack: &'a Stack,
    turns: &'static str,
}

impl<'a> Deployment<'a> {
    fn of(stack: &'a Stack, turns: &'static str) -> Self {
        Self { stack, turns }
    }

    /// The name, which is that of the task queue.
    fn name(&self) -> &str {
        &self.stack.task_queue
    }

    /// Starts a worker of this version.
    fn worker(&self, build_id: &str) -> Process {
        let args = ["worker", "--turns", self.turns];
        let version = [
            ("TEMPORAL_DEPLOYMENT_NAME", self.name()),
            ("TEMPORAL_WORKER_BUILD_ID", build_id),
        ];
        self.stack.spawn(&args, "worker", &version)
    }

    /// Makes a version the current one, once its worker has polled.
    async fn set_current(&self, build_id: &str) {
        let args = [
            "worker",
            "deployment",
            "set-current-version",
            "--deployment-name",
            self.name(),
            "--build-id",
            build_id,
            "--yes",
        ];
        wait::until(&format!("{build_id} is current"), || async {
            let output = self.stack.temporal.cli(&args).await;
            output.status.success().then_some(())
        })
        .await;
        wait::until(
            &format!("the queue knows that {build_id} is current"),
            || async {
                let current = self.stack.temporal.current_version(self.name()).await;
                (current.as_deref() == Some(build_id)).then_some(())
            },
        )
        .await;
    }

    /// The versions whose workers have ended workflow tasks of a conversation's run, in order.
    async fn versions(&self, conversation: &str) -> Vec<String> {
        let history = self.stack.history(conversation).await;
        let version = |event: &Value| {
            let task = &event["workflowTaskCompletedEventAttributes"];
            let id = task["deploymentVersion"]["buildId"].as_str();
            id.map(str::to_owned)
        };
        let mut versions: Vec<_> = history.iter().filter_map(version).collect();
        versions.dedup();
        versions
    }
}

/// A turn with one tool, whose last call waits until the test lets it go.
fn held_at_last(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("Let me look.").call("test_read", &json!({})),
        _ => Reply::text("Here it is.").held(),
    }
}

/// Begins a turn on version `one`, and makes `two` the current version in the middle of it.
async fn replaced_in_the_middle(deployment: &Deployment<'_>) -> (String, Process, Process) {
    let one = deployment.worker("one");
    deployment.set_current("one").await;
    let (conversation, _) = deployment.stack.ask("hello").await;
    deployment.stack.asked(2).await;
    let two = deployment.worker("two");
    deployment.set_current("two").await;
    (conversation, one, two)
}

#[tokio::test]
async fn a_turn_ends_on_the_version_that_it_began_on() {
    let stack = Stack::new(Model::start(held_at_last).await).await;
    let deployment = Deployment::of(&stack, "pinned");
    let _gateway = stack.gateway().await;
    let (conversation, _one, _two) = replaced_in_the_middle(&deployment).await;
    stack.model.release();
    stack.ended(&conversation, 1).await;
    let (next, _) = stack.ask("hello").await;
    stack.ended(&next, 1).await;
    assert_eq!(deployment.versions(&conversation).await, ["one"]);
    assert_eq!(deployment.versions(&next).await, ["two"]);
}

#[tokio::test]
async fn a_turn_moves_to_the_newest_version_when_it_is_told_to() {
    let has_moved = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&has_moved);
    // The turn takes steps until the test has seen the move. The parts of the engine learn of a new version one after
    // another, and a step may come before the last part has learned of the version.
    let model = Model::start(
        move |request: &Request| match request.results_since_user() {
            0 => Reply::text("Let me look.").call("test_read", &json!({})),
            1 => Reply::text("Once more.")
                .call("test_read", &json!({}))
                .held(),
            _ if ends.load(Ordering::SeqCst) => Reply::text("Here it is."),
            _ => Reply::text("Once more.").call("test_read", &json!({})),
        },
    );
    let stack = Stack::with_agent(model.await, "tools = [\"test_read\"]\nmax_steps = 1000").await;
    let deployment = Deployment::of(&stack, "newest");
    let _gateway = stack.gateway().await;
    let (conversation, _one, _two) = replaced_in_the_middle(&deployment).await;
    stack.model.release();
    wait::until("the turn runs on the newest version", || async {
        let versions = deployment.versions(&conversation).await;
        (versions == ["one", "two"]).then_some(())
    })
    .await;
    has_moved.store(true, Ordering::SeqCst);
    stack.ended(&conversation, 1).await;
    assert_eq!(deployment.versions(&conversation).await, ["one", "two"]);
}

#[tokio::test]
async fn a_turn_whose_version_has_no_workers_left_is_moved_by_hand() {
    let stack = Stack::new(Model::start(held_at_last).await).await;
    let deployment = Deployment::of(&stack, "pinned");
    let _gateway = stack.gateway().await;
    let (conversation, one, _two) = replaced_in_the_middle(&deployment).await;
    one.kill().await;
    stack.model.release();
    let workflow = ids::workflow_id(&conversation);
    let moved = [
        "workflow",
        "update-options",
        "--workflow-id",
        &workflow,
        "--versioning-override-behavior",
        "auto_upgrade",
    ];
    stack.temporal.succeed(&moved).await;
    stack.ended(&conversation, 1).await;
    assert_eq!(deployment.versions(&conversation).await, ["one", "two"]);
}
