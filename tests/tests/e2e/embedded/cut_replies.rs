//! Answers that the provider cuts at its limit of tokens.

use everturn_tests::{
    events::{contents, data, types},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::json;

/// Counts to four, and gets no further than two words in one reply.
fn count(request: &Request) -> Reply {
    let spoken = request.body["messages"].to_string();
    match (spoken.contains("one two"), spoken.contains("three four")) {
        (false, _) => Reply::text("one two").at_limit(),
        (true, false) => Reply::text("three four").at_limit(),
        (true, true) => Reply::text("and that is all."),
    }
}

#[tokio::test]
async fn a_cut_answer_says_so() {
    let stack = Stack::new(Model::start(count).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("count").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(data(&events, "assistant_message")[0]["finish"], "length");
    assert_eq!(data(&events, "complete")[0]["finish"], "length");
    assert_eq!(stack.model.requests().len(), 1);
}

#[tokio::test]
async fn a_cut_answer_may_go_on_to_its_end() {
    let agent = "tools = []\non_cut_reply = \"continue\"\n";
    let stack = Stack::with_agent(Model::start(count).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("count").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message assistant_message assistant_message assistant_message complete"
    );
    assert_eq!(
        contents(&events, "assistant_message"),
        ["one two", "three four", "and that is all."]
    );
    let finishes: Vec<_> = data(&events, "assistant_message")
        .iter()
        .map(|answer| answer["finish"].clone())
        .collect();
    assert_eq!(finishes, [json!("length"), json!("length"), json!("stop")]);
    let complete = &data(&events, "complete")[0];
    assert_eq!(
        (&complete["finish"], &complete["steps"]),
        (&json!("stop"), &json!(3))
    );
    // A reset saves the same again, and asks nothing again.
    stack.reset(&conversation).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    assert_eq!(stack.events(&conversation).await, events);
    assert_eq!(stack.model.requests().len(), 3);
}

/// The last step may not be spent on a part of the answer: the turn ends with what there is.
#[tokio::test]
async fn a_cut_answer_ends_with_the_last_step() {
    let agent = "tools = []\non_cut_reply = \"continue\"\nmax_steps = 2\n";
    let stack = Stack::with_agent(Model::start(count).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("count").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        contents(&events, "assistant_message"),
        ["one two", "three four"]
    );
    assert_eq!(data(&events, "complete")[0]["finish"], "length");
}
