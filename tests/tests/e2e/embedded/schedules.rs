//! Temporal Schedules send messages as docs/operate/schedules.md says, by the workflow `send-message`.

use std::path::Path;

use everturn_proto::ids;
use everturn_tests::{
    events::{contents, types},
    model::{Model, Reply, Request},
    stack::Stack,
    temporal, wait,
};
use serde_json::json;
use tokio::process::Command;
use uuid::Uuid;

const TURN: &str = "user_message assistant_message complete";

/// Returns the `temporal schedule …` command of the page with this verb, in one line.
fn command_of_the_page(verb: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate/schedules.md");
    let joined = std::fs::read_to_string(page).unwrap().replace("\\\n", " ");
    let begin = format!("temporal schedule {verb} ");
    let found = joined.lines().find(|line| line.starts_with(&begin));
    found.unwrap().to_owned()
}

/// A schedule of a test. Tests share the server.
struct Schedule<'a> {
    stack: &'a Stack,
    id: String,
    conversation: String,
}

impl<'a> Schedule<'a> {
    fn new(stack: &'a Stack) -> Self {
        let number = Uuid::new_v4().simple();
        Self {
            stack,
            id: format!("morning-{number}"),
            conversation: format!("report-{number}"),
        }
    }

    /// Runs the command of the page for this schedule, with an input of its own if there is one.
    async fn run(&self, verb: &str) {
        let command = command_of_the_page(verb)
            .replace("morning-report", &self.id)
            .replace(r#""report""#, &format!(r#""{}""#, self.conversation))
            .replace(
                "--task-queue everturn",
                &format!("--task-queue {}", self.stack.task_queue),
            );
        let binary = temporal::binary().display().to_string();
        let output = Command::new("sh")
            .args(["-c", &command.replacen("temporal", &binary, 1)])
            .env("TEMPORAL_ADDRESS", self.stack.temporal.address())
            .output()
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}\n{said}");
    }

    /// Waits until so many workflows of the schedule have handed their messages over.
    async fn has_sent(&self, count: usize) {
        let query = format!(
            "WorkflowType = 'send-message' AND ExecutionStatus = 'Completed' AND WorkflowId STARTS_WITH '{}'",
            self.id
        );
        wait::until("the schedule has sent messages", || async {
            let sent = self.stack.temporal.list(&query).await;
            (sent.len() == count).then_some(())
        })
        .await;
    }
}

/// Waits until the conversation's workflow has ended, and returns the id of its latest run.
async fn latest_run(stack: &Stack, conversation: &str) -> String {
    let described = stack.workflow_status(conversation, "COMPLETED").await;
    let execution = &described["workflowExecutionInfo"]["execution"];
    execution["runId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_schedule_begins_turns_and_its_next_message_waits_for_the_end_of_a_turn() {
    let model = Model::start(|_: &Request| Reply::text("As far as this").held());
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let schedule = Schedule::new(&stack);
    schedule.run("create").await;
    schedule.run("trigger").await;
    stack.asked(1).await;
    schedule.has_sent(1).await;
    schedule.run("trigger").await;
    schedule.has_sent(2).await;
    stack
        .has_in_history(&schedule.conversation, "WORKFLOW_EXECUTION_SIGNALED", 1)
        .await;
    stack.model.release();
    let events = stack.ended(&schedule.conversation, 2).await;
    assert_eq!(types(&events), format!("{TURN} {TURN}"));
    assert_eq!(
        contents(&events, "user_message"),
        ["Write the report of yesterday."; 2]
    );
    schedule.run("describe").await;
    schedule.run("delete").await;
}

#[tokio::test]
async fn each_workflow_without_a_conversation_has_its_own_and_a_repeat_sends_once() {
    let model = Model::start(|_: &Request| Reply::text("Yes."));
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let workflow_id = format!("any id/{}", Uuid::new_v4().simple());
    let input = json!({"content": "Go."}).to_string();
    let start = ["workflow", "start", "--type", "send-message"];
    let to = ["--workflow-id", &workflow_id];
    let with = ["--task-queue", &stack.task_queue, "--input", &input];
    stack
        .temporal
        .succeed(&[&start[..], &to, &with].concat())
        .await;
    let conversation = ids::conversation_name_of(&workflow_id);
    assert_eq!(types(&stack.ended(&conversation, 1).await), TURN);
    let first_run = latest_run(&stack, &conversation).await;
    let reset = [
        "workflow",
        "reset",
        "--type",
        "FirstWorkflowTask",
        "--reason",
        "test",
    ];
    stack.temporal.succeed(&[&reset[..], &to].concat()).await;
    wait::until("the message was handed over again", || async {
        (latest_run(&stack, &conversation).await != first_run).then_some(())
    })
    .await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    let events = stack.events(&conversation).await;
    assert_eq!(types(&events), TURN, "the conversation answers once");
    assert_eq!(stack.model.requests().len(), 1);
}

#[tokio::test]
async fn a_wrong_input_fails_the_workflow_and_tells_the_mistake() {
    let model = Model::start(|_: &Request| Reply::text("Yes."));
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let workflow_id = format!("wrong-{}", Uuid::new_v4().simple());
    let input = json!({"conversation_id": "c", "tenant_id": "acme", "content": "Go."}).to_string();
    let execute = ["workflow", "execute", "--type", "send-message"];
    let to = ["--workflow-id", &workflow_id];
    let with = ["--task-queue", &stack.task_queue, "--input", &input];
    let output = stack
        .temporal
        .cli(&[&execute[..], &to, &with].concat())
        .await;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("acme~c"), "{said}");
}
