//! Where the secrets of a process are after its start: not where the kernel shows its environment.

use std::fs;

use everturn_tests::{
    model::{Model, Reply},
    stack::Stack,
    wait,
};

use super::{CANARY, stack_with_canary};

fn environment(process: u32) -> String {
    let bytes = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Only root can read the environment of these processes at all, so as another user the test sees less.
#[tokio::test]
async fn a_worker_and_a_gateway_forget_the_secrets_of_their_environment() {
    let stack = Stack::new(Model::start(|_| Reply::text("Hello.")).await).await;
    let (worker, gateway) = stack_with_canary(&stack).await;
    // The whole turn works without them.
    let (conversation, _) = stack.ask("hi").await;
    stack.ended(&conversation, 1).await;
    for process in worker.ids().into_iter().chain(gateway.ids()) {
        wait::until("the environment has no secret", || async move {
            let shown = environment(process);
            (!shown.contains(CANARY) && !shown.contains("EVERTURN_DATABASE=")).then_some(())
        })
        .await;
        if super::is_root() {
            assert!(
                environment(process).contains("PATH="),
                "what is no secret stays"
            );
        }
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        assert!(!status.contains(CANARY));
    }
}
