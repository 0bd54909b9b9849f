//! Tenants share workers: one that asks for very much does not make another one wait.

use everturn_client::GatewayClient;
use everturn_tests::{
    backends::Backends,
    model::{Model, Reply, Request},
    stack::Stack,
    temporal::Temporal,
    wait,
};

use crate::embedded::keys::{AUTH, create};

/// Turns that one tenant asks for at once.
const FLOOD: usize = 60;
/// Calls of the model that run at once.
const PLACES: usize = 4;

/// Every worker has few places, and each call has one until the model is released. A call later, each gets its own.
const CONFIG: &str =
    "\n[worker]\nmax_concurrent_activities = 4\n[limits]\nconcurrent_turns = 1000\n";

async fn client(stack: &Stack, tenant: &str) -> GatewayClient {
    let key = create(stack, &["--tenant", tenant]).await;
    GatewayClient::with_token(&stack.url(), Some(&key)).unwrap()
}

#[tokio::test]
async fn a_flood_of_one_tenant_does_not_make_another_wait() {
    let model = Model::start(|_: &Request| Reply::text("Done.").held()).await;
    let temporal = Temporal::fair().await.lasting();
    let agent = "llm_timeout = \"1h\"\ntools = []";
    let stack = Stack::of(temporal, Backends::shared().await, model, agent);
    stack.configure(&format!("{AUTH}{CONFIG}"));
    let _gateway = stack.gateway().await;
    let worker = stack.spawn(&["worker"], "worker", &[]);
    let (loud, quiet) = (client(&stack, "loud").await, client(&stack, "quiet").await);
    for _ in 0..FLOOD {
        let conversation = loud.create_conversation(None).await.unwrap();
        loud.submit(&conversation, "flood", None).await.unwrap();
    }
    stack.asked(PLACES).await;
    // All other calls of the flood wait in the engine, and the worker has no place for another one.
    wait::until("the flood waits for places", || async {
        let waiting = backlog(&stack).await;
        (waiting >= FLOOD / 2).then_some(())
    })
    .await;
    let conversation = quiet.create_conversation(None).await.unwrap();
    quiet.submit(&conversation, "quiet", None).await.unwrap();
    wait::until("the quiet call waits, too", || async {
        (backlog(&stack).await > FLOOD - PLACES).then_some(())
    })
    .await;
    stack.model.release();
    stack.asked(FLOOD + 1).await;
    let requests = stack.model.requests();
    let before = requests
        .iter()
        .position(|request| request.last("user") == "quiet")
        .unwrap();
    assert!(before <= 3 * PLACES, "{before} calls were made before");
    drop(worker);
}

/// Returns how many activities wait in the engine for a place.
async fn backlog(stack: &Stack) -> usize {
    let waiting = stack.temporal.backlog(&stack.task_queue).await;
    usize::try_from(waiting).unwrap()
}
