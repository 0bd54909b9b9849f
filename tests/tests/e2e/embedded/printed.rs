//! Checks that everything that is printed for a user works as it is printed: the links and commands of `everturn dev`,
//! and the commands of the page at `/about`.

use std::process::Stdio;

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
    temporal, wait,
};
use serde_json::Value;
use tokio::process::Command;

use crate::embedded::{
    dev::Dev,
    keys::{AUTH, create},
};

/// Runs a command as it is printed, in the directory where the stack was started. Returns its output.
async fn run(stack: &Stack, command: &str, environment: &[(&str, &str)]) -> String {
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(stack.directory())
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the links and the commands that `everturn dev` prints for its user.
async fn hints(stack: &Stack) -> Vec<String> {
    let printed = wait::until("it says what to do next", || async {
        let log = std::fs::read_to_string(stack.path("dev.log")).unwrap();
        log.contains("Ctrl-C stops").then_some(log)
    })
    .await;
    let (_, hints) = printed.split_once("In a browser:").unwrap();
    let hints = hints.lines().filter_map(|line| line.strip_prefix("  "));
    hints.map(str::to_owned).collect()
}

#[tokio::test]
async fn what_dev_prints_works_as_it_is_printed() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Hi.")).await).await;
    let (listen, temporal_port) = (
        format!("127.0.0.1:{}", temporal::free_port()),
        temporal::free_port().to_string(),
    );
    let binary = temporal::binary();
    let args = [
        "dev",
        "--sample",
        "hello",
        "--listen",
        &listen,
        "--temporal-port",
        &temporal_port,
        "--temporal-bin",
        binary.to_str().unwrap(),
    ];
    let _dev = stack.spawn(&args, "dev", &[]);
    let hints = hints(&stack).await;
    let (links, commands): (Vec<_>, Vec<_>) =
        hints.iter().partition(|hint| hint.starts_with("http://"));
    assert_eq!((links.len(), commands.len()), (3, 4), "{hints:#?}");
    for link in links {
        let url = link.split_whitespace().next().unwrap();
        wait::until(&format!("{url} is a page"), || async {
            let answer = reqwest::get(url).await.ok()?;
            let content_type = answer.headers().get("content-type")?.to_str().ok()?;
            (answer.status().is_success() && content_type.starts_with("text/html")).then_some(())
        })
        .await;
    }
    for command in commands {
        run(&stack, command, &[]).await;
    }
}

/// Runs the commands of the page at `/about`, and asserts that they show a whole turn.
async fn commands_of_the_page_show_a_turn(stack: &Stack, environment: &[(&str, &str)]) {
    let dev = Dev::start(stack).await;
    let page = format!("{}/about", dev.url());
    let page = reqwest::get(page).await.unwrap().text().await.unwrap();
    let commands: Vec<_> = page
        .split("<pre><code>")
        .skip(1)
        .map(|rest| as_shown(rest.split("</code>").next().unwrap()))
        .collect();
    let [create, chat, read] = commands.as_slice() else {
        panic!("create, chat and read: {commands:#?}")
    };
    let created: Value = serde_json::from_str(&run(stack, create, environment).await).unwrap();
    assert_eq!(created["id"], "hello", "{created}");
    let frames = run(stack, chat, environment).await;
    assert!(frames.contains("event: complete"), "{frames}");
    let read: Value = serde_json::from_str(&run(stack, read, environment).await).unwrap();
    let timeline = read["timeline"].to_string();
    for expected in ["What is 2 + 2?", "2 + 2 = 4."] {
        assert!(timeline.contains(expected), "{expected}: {timeline}");
    }
}

/// Returns the text of the page as a browser shows it and as a reader copies it.
fn as_shown(html: &str) -> String {
    html.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

async fn adding() -> Stack {
    Stack::new(Model::start(|_: &Request| Reply::text("2 + 2 = 4.")).await).await
}

#[tokio::test]
async fn commands_of_the_page_work_as_they_are_printed() {
    commands_of_the_page_show_a_turn(&adding().await, &[]).await;
}

#[tokio::test]
async fn commands_of_the_page_work_with_a_key_where_one_is_needed() {
    let stack = adding().await;
    stack.configure(AUTH);
    let key = create(&stack, &["--tenant", "acme"]).await;
    commands_of_the_page_show_a_turn(&stack, &[("EVERTURN_TOKEN", &key)]).await;
}
