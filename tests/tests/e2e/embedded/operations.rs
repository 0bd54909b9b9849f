//! The commands that operators run beside workers and gateways: `migrate` and `retention`.

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};

pub(crate) async fn run(stack: &Stack, args: &[&str]) -> String {
    let output = stack.command(args, &[]).output().await.unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn retention_removes_what_is_old_and_nothing_that_runs() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("Old."),
        _ => Reply::text("Running.").held(),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (old, _) = stack.ask("hello").await;
    stack.ended(&old, 1).await;
    let (running, _) = stack.ask("hello").await;
    stack.asked(2).await;

    let text = run(&stack, &["retention", "--older-than", "0s", "--dry-run"]).await;
    assert!(
        text.contains("would remove 1 conversations with 3 events"),
        "{text}"
    );
    assert_eq!(stack.events(&old).await.len(), 3);

    let text = run(&stack, &["retention", "--older-than", "0s"]).await;
    assert!(
        text.contains("removed 1 conversations with 3 events"),
        "{text}"
    );
    let gone = stack.get(&format!("/conversations/{old}")).await;
    assert_eq!(gone["code"], "conversation_not_found");
    stack.model.release();
    assert_eq!(stack.ended(&running, 1).await.len(), 3);
    let text = run(&stack, &["retention", "--older-than", "90d"]).await;
    assert!(text.contains("removed 0 conversations"), "{text}");
}

#[tokio::test]
async fn retention_passes_by_what_it_cannot_remove() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Old.")).await).await;
    let _running = stack.start().await;
    let mut conversations = Vec::new();
    for _ in 0..3 {
        let (conversation, _) = stack.ask("hello").await;
        stack.ended(&conversation, 1).await;
        conversations.push(conversation);
    }
    stack.refuse_removal(&conversations[1]).await;
    let command = ["retention", "--older-than", "0s"];
    let output = stack.command(&command, &[]).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let kept = format!("could not remove conversation {}", conversations[1]);
    assert!(text.contains(&kept) && text.contains("refused"), "{text}");
    assert!(
        text.contains("removed 2 conversations with 6 events whose"),
        "{text}"
    );
    for (conversation, events) in conversations.iter().zip([0, 3, 0]) {
        assert_eq!(stack.events(conversation).await.len(), events);
    }
}

#[tokio::test]
async fn a_wrong_age_is_said() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi.")).await).await;
    let output = stack
        .command(&["retention", "--older-than", "long ago"], &[])
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("90d"));
}

/// A Temporal that is away is waited for. One that refuses is not.
#[tokio::test]
async fn a_namespace_that_does_not_exist_ends_the_command() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi.")).await).await;
    for role in ["worker", "gateway", "migrate"] {
        let mut command = stack.command(&[role], &[("TEMPORAL_NAMESPACE", "nowhere")]);
        let output = command.output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{role}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("namespace nowhere (TEMPORAL_NAMESPACE)") && text.contains("not found"),
            "{role}: {text}"
        );
    }
}
