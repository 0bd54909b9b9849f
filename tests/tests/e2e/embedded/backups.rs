//! SQLite goes back to a copy that was taken while a turn ran, as docs/operate/backup.md says.

use std::process::Stdio;

use everturn_tests::{
    blocks,
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;
use tokio::process::Command;

use super::dev::Dev;
use crate::production::backups::{PAGE, QUICK};

fn answer(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("I change something.").call("test_once", &json!({"effect": true})),
        _ => Reply::text("This is as far as it c").held(),
    }
}

/// Runs the commands of the page under a heading.
async fn run(stack: &Stack, heading: &str) {
    let status = Command::new("sh")
        .args(["-euc", &blocks::commands(PAGE, heading)])
        .env("EVERTURN_DATA_DIR", stack.directory())
        .env("BACKUP", stack.path("backup"))
        .stdin(Stdio::null())
        .status();
    assert!(status.await.unwrap().success(), "{heading}");
}

#[tokio::test]
async fn a_turn_goes_on_from_a_copy_of_the_file() {
    let stack = Stack::embedded(Model::start(answer).await).await;
    stack.configure(QUICK);
    let mut dev = Dev::start(&stack).await;
    let client = dev.client();
    let kept = client.create_conversation(None).await.unwrap();
    client.submit(&kept, "work", None).await.unwrap();
    stack.asked(2).await;
    run(&stack, "Copy the file of SQLite").await;
    let lost = client.create_conversation(None).await.unwrap();
    dev.kill().await;
    run(&stack, "Restore the file of SQLite").await;
    stack.model.release();
    let dev = dev.start_again(&stack).await;
    let end = dev.frames_until(&kept, async || {}, "complete").await;
    assert_eq!(end.last().unwrap().event, "complete");
    let events = dev.events(&kept).await;
    assert_eq!(
        types(&events),
        "user_message thought act observe assistant_message complete"
    );
    assert_eq!(stack.effects().len(), 1, "what had ended is not done again");
    let gone = dev.client().last_sequence(&lost).await;
    assert!(gone.unwrap_err().to_string().contains("404"));
}
