//! What the crate promises, with real processes.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use everturn_supervisor::{GroupEnd, ProcessGroup, Program, Signal};

/// The longest wait for something that takes milliseconds on a machine with nothing else to do.
const LIMIT: Duration = Duration::from_secs(60);

fn sh(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// A directory to be removed with a group.
fn scratch() -> PathBuf {
    tempfile::tempdir().unwrap().keep()
}

fn end_with(signal: Signal, scratch: &Path) -> GroupEnd {
    GroupEnd {
        signal,
        grace: Duration::from_secs(1),
        scratch: Some(scratch.to_owned()),
    }
}

async fn until(what: &str, is_true: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < LIMIT, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// True while a process runs. A zombie does not run.
fn is_alive(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The process ids that a script wrote to a file, once there are `count`.
async fn ids(file: &Path, count: usize) -> Vec<String> {
    let read = || fs::read_to_string(file).unwrap_or_default();
    until("the processes run", || {
        read().matches('\n').count() == count
    })
    .await;
    read().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_dropped_group_is_killed_with_all_that_it_started() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ids");
    let group = ProcessGroup::start(&GroupEnd::KILL).unwrap();
    let script = format!(
        "(trap '' TERM; sleep 600 & echo $! >> {0}; wait) & echo $! >> {0}; wait",
        file.display()
    );
    let mut child = sh(&script).process_group(group.id()).spawn().unwrap();
    let ids = ids(&file, 2).await;
    assert!(ids.iter().all(|id| is_alive(id)));
    drop(group);
    child.wait().unwrap();
    until("all are gone", || !ids.iter().any(|id| is_alive(id))).await;
}

#[tokio::test]
async fn a_signal_for_the_group_leaves_it_watched() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ids");
    let mut group = ProcessGroup::start(&GroupEnd::KILL).unwrap();
    let script = format!(
        "trap '' TERM; echo $$ >> {}; exec sleep 600",
        file.display()
    );
    let mut stubborn = sh(&script).process_group(group.id()).spawn().unwrap();
    ids(&file, 1).await;
    let mut polite = sh("exec sleep 600")
        .process_group(group.id())
        .spawn()
        .unwrap();
    group.signal(Signal::SIGTERM).unwrap();
    assert!(!polite.wait().unwrap().success());
    assert!(
        stubborn.try_wait().unwrap().is_none(),
        "the group was ended"
    );
    assert!(
        group.signal(Signal::SIGKILL).is_err(),
        "the watcher would be killed"
    );
    group.end().await;
    assert!(!stubborn.wait().unwrap().success());
    assert!(
        group.signal(Signal::SIGTERM).is_err(),
        "its id may be another group's"
    );
}

#[tokio::test]
async fn a_program_ends_by_a_signal_and_starts_again() {
    let scratch = scratch();
    let mut program = Program::new(&end_with(Signal::SIGTERM, &scratch)).unwrap();
    assert!(!program.is_running());
    program.start(sh("exit 7")).unwrap();
    assert_eq!(program.ended().await.unwrap().code(), Some(7));
    assert!(program.signal(Signal::SIGTERM).is_err(), "it has ended");

    program.start(sh("exec sleep 600")).unwrap();
    assert!(program.is_running());
    assert!(program.start(sh("true")).is_err(), "one at a time");
    program.signal(Signal::SIGTERM).unwrap();
    assert!(!program.ended().await.unwrap().success());
    assert!(scratch.exists(), "the next one may need it");
    program.stop().await;
    assert!(!scratch.exists());
    assert!(program.start(sh("true")).is_err(), "nobody would watch it");
}

#[tokio::test]
async fn a_program_is_stopped_in_order_and_killed_when_that_is_not_enough() {
    let directory = tempfile::tempdir().unwrap();
    let (ready, order) = (directory.path().join("ready"), scratch());
    let said = directory.path().join("said");
    let trap = |then: &str| {
        format!(
            "trap 'echo stopped >> {}; {then}' TERM; echo $$ > {}; while :; do sleep 0.05; done",
            said.display(),
            ready.display()
        )
    };
    let mut program = Program::new(&end_with(Signal::SIGTERM, &order)).unwrap();
    program.start(sh(&trap("exit"))).unwrap();
    ids(&ready, 1).await;
    program.stop().await;
    assert_eq!(fs::read_to_string(&said).unwrap(), "stopped\n");

    fs::remove_file(&ready).unwrap();
    let order = scratch();
    let mut program = Program::new(&end_with(Signal::SIGTERM, &order)).unwrap();
    program.start(sh(&trap(""))).unwrap();
    let id = ids(&ready, 1).await.remove(0);
    program.stop().await;
    assert!(fs::read_to_string(&said).unwrap().lines().count() >= 2);
    assert!(!is_alive(&id) && !order.exists());
}

#[tokio::test]
async fn a_paused_program_does_nothing_until_it_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ids");
    let mut program = Program::new(&GroupEnd::KILL).unwrap();
    let script = format!("sleep 600 & echo $! > {}; wait", file.display());
    program.start(sh(&script)).unwrap();
    let child = ids(&file, 1).await.remove(0);
    let is_stopped = || {
        let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap();
        status.contains("State:\tT")
    };
    program.pause().unwrap();
    until("its child is stopped", is_stopped).await;
    program.resume().unwrap();
    until("its child goes on", || !is_stopped()).await;
}

/// Runs in the process that is killed: this test starts the programs there.
#[tokio::test]
async fn nothing_outlives_a_parent_that_is_killed() {
    const HOLD: &str = "EVERTURN_TEST_HOLD";
    if let Some(directory) = std::env::var_os(HOLD) {
        hold(Path::new(&directory)).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "nothing_outlives_a_parent_that_is_killed",
            "--nocapture",
        ])
        .env(HOLD, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let scratch = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("holding ").map(PathBuf::from))
        .expect("the holder has ended");
    let ids = ids(&directory.path().join("ids"), 3).await;
    assert!(ids.iter().all(|id| is_alive(id)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("all are gone", || !ids.iter().any(|id| is_alive(id))).await;
    until("the directory is removed", || !scratch.exists()).await;
}

/// A paused program that has a child, and a group with another one.
async fn hold(directory: &Path) {
    let (file, scratch) = (directory.join("ids"), scratch());
    let mut program = Program::new(&end_with(Signal::SIGTERM, &scratch)).unwrap();
    let script = format!(
        "sleep 600 & echo $! >> {0}; echo $$ >> {0}; wait",
        file.display()
    );
    program.start(sh(&script)).unwrap();
    ids(&file, 2).await;
    program.pause().unwrap();
    let group = ProcessGroup::start(&GroupEnd::KILL).unwrap();
    let script = format!("echo $$ >> {}; exec sleep 600", file.display());
    // The program ends with the group, when this process is killed.
    #[allow(clippy::zombie_processes)]
    let _child = sh(&script).process_group(group.id()).spawn().unwrap();
    println!("\nholding {}", scratch.display());
    std::future::pending::<()>().await;
}
