//! Turns over verified TLS, while certificates are replaced.

use std::fs;

use everturn_tests::{
    model::{Model, Reply},
    stack::{Process, Stack},
    wait,
};

use super::{
    certificates::{Authority, Files},
    servers::{HOST, Servers, refuses},
};

/// Starts gateways and workers that are told of these servers.
async fn start(stack: &Stack, servers: &Servers, files: &Files) -> (Process, Process) {
    let environment = servers.environment(stack, files);
    let pairs = environment.iter();
    let pairs: Vec<_> = pairs.map(|(name, value)| (*name, value.as_str())).collect();
    let gateway = stack.gateway_with(&pairs).await;
    (gateway, stack.worker_with(&pairs))
}

/// A turn of a new conversation comes to its end.
async fn turn(stack: &Stack) {
    let (conversation_id, _) = stack.ask("go").await;
    let events = stack.ended(&conversation_id, 1).await;
    assert_eq!(events.last().unwrap()["event_type"], "complete");
}

/// Waits until the processes have connected to Temporal and Redis in the new way.
async fn are_used(stack: &Stack, servers: &Servers) {
    wait::until("Temporal is reached by TLS", || async {
        (servers.temporal.served() >= 2).then_some(())
    })
    .await;
    let port = servers.redis_port.expect("Redis speaks TLS");
    wait::until("Redis is reached by TLS", || async {
        let clients = stack.redis().command("CLIENT LIST").await.unwrap();
        clients
            .contains(&format!("laddr=127.0.0.1:{port} "))
            .then_some(())
    })
    .await;
}

/// **Attack on an installation that rotates certificates:** the old ones expire. A process that keeps those that it was
/// started with is cut off at the next connection.
#[tokio::test]
async fn turns_go_on_over_verified_tls_while_all_certificates_are_replaced() {
    let stack = Stack::breakable(Model::start(|_| Reply::text("Done.")).await).await;
    let (old, new) = (Authority::new("Old"), Authority::new("New"));
    let old_client = old.sign("client");
    let files = Files::in_directory(stack.directory());
    files.write(&old, &old_client);
    let servers = Servers::of(&stack, &old).await;
    let (gateway, worker) = start(&stack, &servers, &files).await;
    let processes = [gateway.ids(), worker.ids()];
    turn(&stack).await;
    are_used(&stack, &servers).await;

    files.write(&new, &new.sign("client"));
    servers.restart_with(&stack, &new).await;
    for port in [Some(servers.temporal.port), servers.redis_port]
        .into_iter()
        .flatten()
    {
        assert!(refuses(port, &new, &old_client).await);
        assert!(!refuses(port, &new, &new.sign("client")).await);
    }
    turn(&stack).await;
    are_used(&stack, &servers).await;
    assert_eq!([gateway.ids(), worker.ids()], processes);
    for process in [gateway, worker] {
        assert_eq!(process.terminate().await, Some(0));
    }
}

/// What replaces certificates writes one file after the other.
#[tokio::test]
async fn while_a_key_is_half_written_the_one_of_before_is_used() {
    let stack = Stack::new(Model::start(|_| Reply::text("Done.")).await).await;
    let authority = Authority::new("Ours");
    let files = Files::in_directory(stack.directory());
    files.write(&authority, &authority.sign("client"));
    let servers = Servers::only_temporal(&stack, &authority).await;
    let _running = start(&stack, &servers, &files).await;
    turn(&stack).await;
    fs::write(&files.key, "-----BEGIN PRIVATE KEY-----\nMC4").unwrap();
    fs::write(&files.authority, "").unwrap();
    let config = authority.sign(HOST).server(Some(&authority));
    servers.temporal.restart_with(config);
    turn(&stack).await;
    stack.logged("worker", "version stays in use").await;
}
