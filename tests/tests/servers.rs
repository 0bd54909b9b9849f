//! The servers that tests run on: each starts, answers, comes back after harm, and leaves no process behind.

#![allow(clippy::unwrap_used)]

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use everturn_tests::{
    ports::free_port, postgres::Postgres, redis::Redis, temporal::Temporal, wait,
};
use sqlx::{PgConnection, Row};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// Processes that run in a directory or name it: PostgreSQL's children have only the former.
fn processes_in(directory: &Path) -> Vec<String> {
    let of_process = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let runs_in = std::fs::read_link(entry.path().join("cwd"))
            .is_ok_and(|cwd| cwd.starts_with(directory));
        (runs_in || line.contains(directory.to_str()?)).then_some(line)
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| of_process(entry.ok()?))
        .collect()
}

async fn leaves_nothing(directory: PathBuf) {
    wait::until("no process is left", || async {
        processes_in(&directory).is_empty().then_some(())
    })
    .await;
    wait::until("the directory is removed", || async {
        (!directory.exists()).then_some(())
    })
    .await;
}

async fn count(connection: &mut PgConnection) -> Option<i64> {
    Some(
        sqlx::query("SELECT count(*) FROM kept")
            .fetch_one(connection)
            .await
            .ok()?
            .get(0),
    )
}

#[tokio::test]
async fn postgres() {
    let postgres = Postgres::start().await;
    postgres.create_database("one").await;
    postgres
        .execute(
            "one",
            "CREATE TABLE kept (n INT); INSERT INTO kept VALUES (1)",
        )
        .await
        .unwrap();

    let mut connection = postgres.connect("one").await.unwrap();
    assert_eq!(count(&mut connection).await, Some(1));
    postgres.terminate_backends().await;
    assert_eq!(
        count(&mut connection).await,
        None,
        "the connection was not cut"
    );

    postgres.restart_fast().await;
    postgres
        .execute("one", "INSERT INTO kept VALUES (2)")
        .await
        .unwrap();
    postgres.restart_immediate().await;
    let mut connection = postgres.connect("one").await.unwrap();
    assert_eq!(
        count(&mut connection).await,
        Some(2),
        "what was committed is lost"
    );

    postgres.pause().await;
    let stuck = tokio::time::timeout(Duration::from_millis(300), count(&mut connection)).await;
    assert!(stuck.is_err(), "a paused server answers");
    postgres.resume().await;
    let mut connection = postgres.connect("one").await.unwrap();
    assert_eq!(count(&mut connection).await, Some(2));

    // Even a paused one ends.
    postgres.pause().await;
    let directory = postgres.directory().to_owned();
    assert!(processes_in(&directory).len() > 3);
    drop(postgres);
    leaves_nothing(directory).await;
}

#[tokio::test]
async fn redis() {
    let redis = Redis::start().await;
    assert_eq!(redis.command("PING").await.unwrap(), "+PONG");
    redis.command("SET kept 1").await.unwrap();
    redis.flush().await;
    assert_eq!(redis.command("EXISTS kept").await.unwrap(), ":0");

    redis.command("SET kept 1").await.unwrap();
    let url = redis.url();
    redis.kill().await;
    assert!(redis.command("PING").await.is_err());
    redis.start_again().await;
    assert_eq!(
        (redis.url(), redis.command("EXISTS kept").await.unwrap()),
        (url, ":0".to_owned())
    );

    redis.slow(Duration::from_millis(300)).await;
    let begun = std::time::Instant::now();
    redis.command("PING").await.unwrap();
    assert!(
        begun.elapsed() > Duration::from_millis(200),
        "{:?}",
        begun.elapsed()
    );

    let directory = redis.directory().to_owned();
    assert!(!processes_in(&directory).is_empty());
    redis.kill().await;
    drop(redis);
    leaves_nothing(directory).await;
}

#[tokio::test]
async fn temporal() {
    let postgres = Postgres::start().await;
    let temporal = Temporal::production(&postgres).await;
    let start = [
        "workflow",
        "start",
        "--type",
        "nothing",
        "--task-queue",
        "nobody",
        "--workflow-id",
        "kept",
    ];
    let attributes = ["--search-attribute", "AgentName=\"tester\""];
    temporal.json(&[&start[..], &attributes].concat()).await;
    temporal.restart().await;
    wait::until("the workflow is listed", || async {
        let found = temporal.list("AgentName=\"tester\"").await;
        (found.first()?["execution"]["workflowId"] == "kept").then_some(())
    })
    .await;
    assert_eq!(
        temporal.history("kept").await["events"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    let directory = temporal.directory().unwrap().to_owned();
    assert!(!processes_in(&directory).is_empty());
    drop(temporal);
    leaves_nothing(directory).await;
    drop(postgres);
}

/// The test runs itself in a second process, which holds the server. That process has `EVERTURN_TEST_HOLD` set.
#[tokio::test]
async fn a_paused_server_ends_when_its_parent_is_killed() {
    const HOLD: &str = "EVERTURN_TEST_HOLD";
    if std::env::var_os(HOLD).is_some() {
        let postgres = Postgres::start().await;
        postgres.pause().await;
        println!("\nholding {}", postgres.directory().display());
        std::future::pending::<()>().await;
    }
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_paused_server_ends_when_its_parent_is_killed",
            "--nocapture",
        ])
        .env(HOLD, "1")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let directory = loop {
        let line = lines
            .next_line()
            .await
            .unwrap()
            .expect("the holder has ended");
        if let Some(directory) = line.strip_prefix("holding ") {
            break PathBuf::from(directory);
        }
    };
    assert!(processes_in(&directory).len() > 3);
    holder.kill().await.unwrap();
    leaves_nothing(directory).await;
}

/// Starts `everturn-stack` and waits until it says how to use it.
async fn make_stack(directory: &Path) -> Child {
    // Away from the ports that other tests get: it takes several around this one.
    let temporal = 31_000 + u16::try_from(std::process::id() % 1000).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_everturn-stack"))
        .arg("--data-dir")
        .arg(directory)
        .args([
            "--postgres-port",
            &free_port().to_string(),
            "--redis-port",
            &free_port().to_string(),
        ])
        .args(["--temporal-port", &temporal.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = lines
            .next_line()
            .await
            .unwrap()
            .expect("everturn-stack has ended");
        println!("{line}");
        if line.contains("Ctrl-C") {
            // Whatever it prints later must find a reader.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return child;
        }
    }
}

#[tokio::test]
async fn make_stack_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    // The account that runs PostgreSQL must get to its directory in this one.
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), everyone).unwrap();

    let mut stack = make_stack(directory.path()).await;
    let id = stack.id().unwrap().to_string();
    assert!(processes_in(directory.path()).len() > 5);
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .await
            .unwrap()
            .success()
    );
    assert_eq!(stack.wait().await.unwrap().code(), Some(0));
    assert_eq!(processes_in(directory.path()), Vec::<String>::new());

    // Again on the same data, and now without a chance to say goodbye.
    let mut stack = make_stack(directory.path()).await;
    stack.kill().await.unwrap();
    wait::until("no process is left", || async {
        processes_in(directory.path()).is_empty().then_some(())
    })
    .await;
}
