//! A provider that refuses calls and does not bill them: the step waits, everybody sees why, and no refusal counts as a
//! paid call.

use std::time::Duration;

use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    stack::Stack,
    temporal::free_port,
    wait,
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

/// The provider is busy in every way, for more calls than a step may make.
fn refuses(number: usize) -> Option<Reply> {
    Some(match number {
        1 => Reply::error(429, "rate_limited").header("retry-after-ms", "700"),
        2..=4 => Reply::error(503, "unavailable"),
        5..=7 => Reply::error(529, "overloaded_error"),
        8..=9 => Reply::error(429, "rate_limited"),
        _ => return None,
    })
}

#[tokio::test]
async fn refused_calls_are_waited_out_and_one_call_is_paid() {
    let model = Model::start(|request: &Request| {
        refuses(request.number).unwrap_or_else(|| Reply::text("At last."))
    });
    let stack = Stack::embedded(model.await).await;
    let _all = stack.all_in_one().await;
    let (conversation, frames) = stack.frames_of_turn("go").await;
    let events = stack.events(&conversation).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(stack.model.requests().len(), 10);

    let waits: Vec<_> = frames
        .iter()
        .filter(|frame| frame.event == "model_waiting")
        .collect();
    // The stream may begin after the first waits.
    assert!(waits.len() > 3, "{frames:#?}");
    for (wait, attempt) in waits.iter().rev().zip((2..=10).rev()) {
        let code = match attempt {
            3..=5 => "llm_unavailable",
            6..=8 => "llm_overloaded",
            _ => "llm_rate_limited",
        };
        assert_eq!(
            (&wait.data["attempt"], &wait.data["code"]),
            (&json!(attempt), &json!(code))
        );
        assert!(wait.data["retry_after_ms"].is_u64());
        assert_eq!(wait.id, None, "the store has no event of a wait");
    }

    let usage = stack.get_api("/api/v1/usage?by=agent").await;
    let row = &usage["usage"][0];
    assert_eq!(
        (&row["calls"], &row["cut_calls"]),
        (&json!(1), &json!(0)),
        "{usage:#}"
    );
}

#[tokio::test]
async fn the_status_says_why_a_turn_waits_and_a_cancel_ends_the_wait() {
    let model =
        Model::start(|_: &Request| Reply::error(429, "rate_limited").header("retry-after", "300"));
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    let path = format!("/conversations/{conversation}/execution-status");
    let waiting = wait::until("the turn waits", || async {
        let status = stack.get(&path).await;
        status["waiting"]
            .is_object()
            .then(|| status["waiting"].clone())
    })
    .await;
    let shown = [&waiting["code"], &waiting["attempt"], &waiting["step"]];
    assert_eq!(shown, [&json!("llm_rate_limited"), &json!(2), &json!(0)]);
    assert!(waiting["next_try_at"].as_str().unwrap().ends_with('Z'));
    let cancel = format!("/conversations/{conversation}/cancel");
    stack.post(&cancel, &json!({})).await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message cancelled");
    assert_eq!(stack.get(&path).await["waiting"], Value::Null);
    assert_eq!(stack.model.requests().len(), 1);
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_waited_for() {
    let stack = Stack::new(Model::start(|_| Reply::text("I am here.")).await).await;
    let port = free_port();
    stack.configure(&format!(
        "[providers.late]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         [agents.late]\nprovider = \"late\"\nmodel = \"m\"\n"
    ));
    let _running = stack.start().await;
    let client = stack.client();
    let conversation = client.create_conversation(Some("late")).await.unwrap();
    client.submit(&conversation, "hello", None).await.unwrap();
    let path = format!("/conversations/{conversation}/execution-status");
    wait::until("seven calls have failed", || async {
        let status = stack.get(&path).await;
        (status["waiting"]["attempt"].as_u64()? > 7).then_some(())
    })
    .await;
    let target = stack.model.base_url();
    let target = target.split('/').nth(2).unwrap().to_owned();
    tokio::spawn(forward(port, target));
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(stack.model.requests().len(), 1);
}

/// Forwards the connections of a port.
async fn forward(port: u16, to: String) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    while let Ok((mut from, _)) = listener.accept().await {
        let to = to.clone();
        tokio::spawn(async move {
            let mut to = TcpStream::connect(to).await?;
            tokio::io::copy_bidirectional(&mut from, &mut to).await
        });
    }
}

#[tokio::test]
async fn patience_ends() {
    for (patience, most_calls) in [("0s", 1), ("1s", 100)] {
        let model = Model::start(|_: &Request| Reply::error(529, "overloaded_error"));
        let agent = format!("patience = \"{patience}\"\ntools = []\n");
        let stack = Stack::with_agent(model.await, &agent).await;
        let _running = stack.start().await;
        let (conversation, _) = stack.ask("hello").await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(types(&events), "user_message error");
        assert_eq!(data(&events, "error")[0]["code"], "llm_overloaded");
        let calls = stack.model.requests().len();
        assert!(
            (1..=most_calls).contains(&calls),
            "{patience}: {calls} calls"
        );
        assert!(most_calls == 1 || calls > 2, "{patience}: {calls} calls");
    }
}

#[tokio::test]
async fn a_provider_that_asks_for_too_much_time_is_not_waited_for() {
    let model =
        Model::start(|_: &Request| Reply::error(429, "rate_limited").header("retry-after", "300"));
    let agent = "patience = \"1m\"\ntools = []\n";
    let stack = Stack::with_agent(model.await, agent).await;
    let _running = stack.start().await;
    let begun = std::time::Instant::now();
    let (conversation, _) = stack.ask("hello").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "error")[0]["code"], "llm_rate_limited");
    assert_eq!(stack.model.requests().len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(60));
}
