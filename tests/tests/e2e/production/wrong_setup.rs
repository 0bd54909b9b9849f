//! Workers and gateways at a PostgreSQL that is not ready for them. Other wrong surroundings are in
//! `tests/tests/e2e/embedded/wrong_setup.rs`.

use std::fs;

use everturn_tests::{
    stack::{Process, Stack},
    temporal::free_port,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use crate::embedded::{
    health::Probes,
    wrong_setup::{ROLES, stack},
};

/// The last line, which says why a role has ended.
fn reason(said: &str) -> &str {
    said.trim_end().lines().last().unwrap_or_default()
}

#[tokio::test]
async fn tables_that_are_missing_are_told_with_the_command_that_makes_them() {
    let stack = stack().await;
    let postgres = stack.backends().postgres().unwrap();
    let name = format!("empty_{}", uuid::Uuid::new_v4().simple());
    postgres.create_database(&name).await;
    let empty = [("EVERTURN_DATABASE", postgres.url(&name))];
    let empty = empty
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    for role in ROLES {
        let said = stack.refused(role, &empty).await;
        assert!(reason(&said).contains("run `everturn migrate`"), "{said}");
    }
}

/// Spawns each role, and waits until it waits for the database, and has logged this.
async fn wait_for_the_database(
    stack: &Stack,
    database: &str,
    logged: &str,
) -> [(Probes, Process); 2] {
    let environment = [("EVERTURN_DATABASE", database)];
    let spawned = ROLES.map(|role| {
        let probes = Probes::free();
        let process = probes.spawn(stack, role, &environment);
        (probes, process)
    });
    for ((probes, _), role) in spawned.iter().zip(ROLES) {
        probes.waits_for("the database").await;
        stack.logged(role[0], "waiting for the database").await;
        stack.logged(role[0], logged).await;
    }
    spawned
}

#[tokio::test]
async fn a_login_that_is_refused_is_told_without_its_password() {
    let stack = stack().await;
    let postgres = stack.backends().postgres().unwrap();
    let port = postgres.port();
    let url = format!("postgres://nobody:hunter2@127.0.0.1:{port}/postgres");
    // The role may be made, or its password rotated, so they wait.
    let _waiting = wait_for_the_database(&stack, &url, "nobody").await;
    for role in ROLES {
        let log = fs::read_to_string(stack.path(&format!("{}.log", role[0]))).unwrap();
        assert!(!log.contains("hunter2"), "{log}");
    }
}

#[tokio::test]
async fn a_database_that_comes_later_is_found() {
    let stack = stack().await;
    let postgres = stack.backends().postgres().unwrap();
    let (real, later) = (postgres.port(), free_port());
    let url = stack.backends().database().unwrap();
    let url = url.replace(&format!(":{real}/"), &format!(":{later}/"));
    let waiting = wait_for_the_database(&stack, &url, "refused").await;
    let listener = TcpListener::bind(("127.0.0.1", later)).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(("127.0.0.1", real)).await.unwrap();
            tokio::spawn(async move {
                let _ended = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    for (probes, _) in &waiting {
        probes.says("/readyz", 200).await;
    }
}
