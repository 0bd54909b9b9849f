//! A worker that has lost its connection to Temporal learns from Redis that another worker makes its LLM call again. The
//! test waits for two heartbeat time-outs of 90 s. The other tests of killed workers are in `tests/tests/e2e/both/crash.rs`.

use std::time::Duration;

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    proxy::{Direction, Proxy},
    stack::Stack,
    wait,
};

/// A worker has lost its connection to Temporal, and does not notice. It goes on with an LLM call that another worker
/// makes again.
#[tokio::test]
async fn a_call_that_another_worker_makes_again_is_stopped() {
    let words = || vec!["word ".to_owned(); 6000];
    let model = Model::start(move |request: &Request| match request.number {
        1 => Reply::pieces(words(), Duration::from_millis(100)),
        _ => Reply::text("This is the whole answer."),
    });
    let stack = Stack::breakable(model.await).await;
    let proxy = Proxy::to(stack.temporal.port()).await;
    let address = format!("127.0.0.1:{}", proxy.port());
    let _lost = stack.spawn(&["worker"], "worker", &[("TEMPORAL_ADDRESS", &address)]);
    let _gateway = stack.gateway().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    proxy.lose(Direction::Requests);
    proxy.lose(Direction::Answers);
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    // 15 s is less than the time-out of the call, and less than the model needs for its whole text.
    let stopped = wait::until("the first call is stopped", || async {
        (stack.model.abandoned() == 1).then_some(())
    });
    let stopped = tokio::time::timeout(Duration::from_secs(15), stopped).await;
    stopped.expect("nobody pays for a call of no use");
    assert_eq!(stack.model.requests().len(), 2);
}
