//! `everturn replay` says whether this version can go on with the turns of others.

use std::{fs, path::Path};

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};

/// Runs `everturn replay`, and returns its exit code and what it said.
async fn replay(stack: &Stack, args: &[&str]) -> (Option<i32>, String) {
    let command = [&["replay"], args].concat();
    let output = stack.command(&command, &[]).output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (
        output.status.code(),
        said + &String::from_utf8_lossy(&output.stderr),
    )
}

/// Waits until a replay says this: Temporal lists workflows some time after they begin or end.
async fn says(stack: &Stack, args: &[&str], expected: &str) {
    wait::until(&format!("{args:?} says: {expected}"), || async {
        let (code, said) = replay(stack, args).await;
        (said == expected && code == Some(0)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn turns_on_a_live_server_are_replayed() {
    let model = Model::start(|request: &Request| match request.last("user").as_str() {
        "wait" => Reply::text("I wait.").held(),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    says(&stack, &[], "there was nothing to replay\n").await;
    let (conversation, _) = stack.ask("go").await;
    stack.ended(&conversation, 1).await;
    let (waiting, _) = stack.ask("wait").await;
    stack.asked(2).await;
    let one = "replayed 1; this version can continue every workflow\n";
    says(&stack, &[], one).await;
    let two = "replayed 2; this version can continue every workflow\n";
    says(&stack, &["--closed"], two).await;
    let tenant = ["--closed", "--query", "TenantId = 'nobody'"];
    says(&stack, &tenant, "there was nothing to replay\n").await;
    stack.model.release();
    stack.ended(&waiting, 1).await;
}

#[tokio::test]
async fn a_history_of_another_workflow_does_not_replay() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("")).await).await;
    let histories = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories");
    let stored = histories.join("plain-0.1.0.json");
    let text = fs::read_to_string(&stored).unwrap();
    let changed = text.replace("llm_thinking_activity", "another_activity");
    assert_ne!(changed, text);
    fs::write(stack.path("changed.json"), changed).unwrap();
    fs::write(stack.path("broken.json"), "{").unwrap();
    let stored = stored.display().to_string();
    let (code, said) = replay(&stack, &[&stored, "changed.json"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("changed.json does not replay: "), "{said}");
    assert!(
        said.contains("replayed 2; 1 of the workflows cannot continue"),
        "{said}"
    );
    assert!(!said.contains(&format!("{stored} does not")), "{said}");
    let (code, said) = replay(&stack, &["broken.json"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("broken.json is not a history"), "{said}");
}
