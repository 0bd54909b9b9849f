//! The owner of an agent, as operators meet the owner: in the log of a failed turn, and in the metrics.

use std::fs;

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    wait,
};

use super::health::Probes;

const FAST: &str = "[reload]\ninterval = \"100ms\"\n";

fn write_agent(stack: &Stack, owner: &str) {
    let file = stack.path("agents.d/clerk.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = format!(
        "[agents.clerk]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
         owner = \"{owner}\"\ncontact = \"#orders \\\"night\\\"\"\n"
    );
    fs::write(file, text).unwrap();
}

/// The series of the agents' owners, without the agent `default`.
async fn owners(probes: &Probes) -> Vec<String> {
    let text = probes.text().await.unwrap();
    let lines = text
        .lines()
        .filter(|line| line.starts_with("everturn_agent_info{agent=\"clerk\""));
    lines.map(str::to_owned).collect()
}

fn info(owner: &str) -> Vec<String> {
    vec![format!(
        "everturn_agent_info{{agent=\"clerk\",owner=\"{owner}\",contact=\"#orders \\\"night\\\"\"}} 1"
    )]
}

#[tokio::test]
async fn a_failed_turn_and_the_metrics_name_the_owner_of_the_agent() {
    let model = Model::start(|_: &Request| Reply::error(401, "invalid_api_key")).await;
    let stack = Stack::new(model).await;
    stack.configure(FAST);
    write_agent(&stack, "Orders");
    let probes = Probes::free();
    let _gateway = stack.gateway().await;
    let _worker = probes.spawn(&stack, &["worker"], &[]);
    probes.says("/readyz", 200).await;
    assert_eq!(owners(&probes).await, info("Orders"));
    let client = stack.client();
    let conversation = client.create_conversation(Some("clerk")).await.unwrap();
    client.submit(&conversation, "hello", None).await.unwrap();
    stack.ended(&conversation, 1).await;
    stack
        .logged("worker", "agent=\"clerk\" owner=\"Orders\"")
        .await;
    write_agent(&stack, "Returns");
    wait::until("the new owner alone", || async {
        (owners(&probes).await == info("Returns")).then_some(())
    })
    .await;
}
