//! `everturn migrate` from several places: PostgreSQL has one of them wait for the other.

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};

use crate::embedded::operations::run;

#[tokio::test]
async fn migrate_from_several_places_at_once() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi.")).await).await;
    let all = (0..4).map(|_| run(&stack, &["migrate"]));
    for text in futures::future::join_all(all).await {
        assert!(
            text.contains("up to date") && text.contains("search attributes"),
            "{text}"
        );
        assert!(!text.contains("password"), "{text}");
    }
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    assert_eq!(stack.ended(&conversation, 1).await.len(), 3);
}
