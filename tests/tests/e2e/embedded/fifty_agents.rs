//! The question of docs/start/fifty-agents.md, from the page alone: which agent spent most, and why did it fail. The blocks
//! of the page run in one shell, on a deployment with several agents. The rows are of today, so the test sets the variable
//! of the day.

use std::{env, fs};

use chrono::{Days, NaiveDate, Utc};
use everturn_tests::{
    blocks,
    model::{CallUsage, Model, Reply, Request},
    stack::{Stack, binary},
};
use serde_json::{Value, json};
use tokio::process::Command;

const PAGE: &str = "docs/start/fifty-agents.md";

/// Stands between the outputs of two blocks.
const MARK: &str = "-- next block --\n";

/// USD per million tokens.
const PRICES: &str = "[models.\"scripted/scripted\"]\ninput = 3\noutput = 10\n";

fn taking(input_tokens: u64, output_tokens: u64) -> CallUsage {
    CallUsage {
        input_tokens,
        output_tokens,
        cached_tokens: 0,
        reasoning_tokens: 0,
    }
}

fn scripted(request: &Request) -> Reply {
    match request.last("user").as_str() {
        "Where is order 1007?" => Reply::text("On its way.").taking(taking(200, 50)),
        "Good morning" => Reply::text("Guten Morgen").taking(taking(100, 20)),
        "Find papers" => Reply::text("None.").taking(taking(2000, 500)),
        _ if request.results_since_user() == 0 => Reply::text("I read. ")
            .call("test_read", &json!({}))
            .taking(taking(2000, 500)),
        _ => Reply::error(400, "document_too_long"),
    }
}

/// A deployment with a file for each agent.
async fn deployment() -> Stack {
    let stack = Stack::new(Model::start(scripted).await).await;
    stack.configure(PRICES);
    let folder = stack.path("agents.d");
    fs::create_dir(&folder).unwrap();
    for agent in ["support", "translator", "research"] {
        let text = format!(
            "[agents.{agent}]\nprovider = \"scripted\"\nmodel = \"scripted\"\ntools = [\"test_read\"]\n"
        );
        fs::write(folder.join(format!("{agent}.toml")), text).unwrap();
    }
    stack
}

/// Runs a turn of each agent, and one more of the agent that fails. Returns the event `error`.
async fn work(stack: &Stack, round: u32) -> Value {
    for (agent, content) in [
        ("support", "Where is order 1007?"),
        ("translator", "Good morning"),
        ("research", "Find papers"),
        ("research", "Summarise the paper"),
    ] {
        let id = format!(
            "{}-{round}",
            content.replace([' ', '?'], "-").to_lowercase()
        );
        let body = json!({"id": id, "agent": agent});
        let (status, said) = stack.post("/conversations", &body).await;
        assert_eq!(status, 201, "{said}");
        stack.client().submit(&id, content, None).await.unwrap();
        let mut events = stack.ended(&id, 1).await;
        let end = events.pop().unwrap();
        if end["event_type"] == "error" {
            return end["event_data"].clone();
        }
    }
    panic!("the last turn fails")
}

fn today() -> NaiveDate {
    Utc::now().date_naive()
}

/// Runs the turns on one day, in UTC.
async fn work_of_a_day(stack: &Stack) -> (NaiveDate, Value) {
    for round in 0.. {
        let day = today();
        let error = work(stack, round).await;
        if today() == day {
            return (day, error);
        }
    }
    unreachable!("a midnight is followed by a day")
}

/// Runs blocks of the page in one shell, with `DAY` set behind the first block. Returns the output of each block.
async fn run(stack: &Stack, blocks: &[String], day: NaiveDate) -> Vec<String> {
    let first = format!("set -eu\n{}\necho $DAY\nDAY={day}\n", blocks[0]);
    let further = blocks[1..]
        .iter()
        .map(|block| format!("printf '%s' '{MARK}'\n{block}\n"));
    let script: String = [first].into_iter().chain(further).collect();
    let mut path = binary().parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap());
    let mut shell = Command::new("sh");
    let stacks = stack.command(&[], &[]);
    for (name, value) in stacks.as_std().get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let shell = shell
        .args(["-c", &script])
        .env("PATH", path)
        .current_dir(stack.directory())
        .output();
    let output = shell.await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let outputs = text.split(MARK);
    outputs.map(str::to_owned).collect()
}

#[tokio::test]
async fn three_queries_of_the_page_say_who_spent_most_and_why_it_failed() {
    let stack = deployment().await;
    let _running = stack.start().await;
    let (day, error) = work_of_a_day(&stack).await;
    let page = blocks::of(PAGE);
    let host = stack.url().replacen("http://", "", 1);
    let commands = page
        .iter()
        .filter(|block| block.word.as_deref() == Some("own-test"));
    let commands: Vec<_> = commands
        .map(|block| block.text.replace("localhost:8080", &host))
        .collect();
    let answers = page.iter().filter(|block| block.language == "text");
    let answers: Vec<_> = answers.map(|block| block.text.as_str()).collect();

    let before = today();
    let outputs = run(&stack, &commands, day).await;
    let [chosen, spent, failed, why, printed] = &outputs[..] else {
        panic!("{PAGE} has five blocks of commands: {outputs:#?}")
    };
    let yesterdays = [before, today()].map(|today| today.checked_sub_days(Days::new(1)).unwrap());
    assert!(
        yesterdays.contains(&chosen.trim().parse().unwrap()),
        "{chosen}"
    );
    assert_eq!(spent, answers[0]);
    assert_eq!(failed.lines().count(), 1, "{failed}");
    let code = error["code"].as_str().unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("document_too_long"), "{error}");
    assert!(
        failed.starts_with(&format!("{code}, 1 attempts, summarise-the-paper-"))
            && failed.trim_end().ends_with(message),
        "{failed}"
    );
    let steps: Vec<Value> = why
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        steps,
        [
            json!({"step": 0, "model": "scripted", "cost_usd": "0.011"}),
            json!({"step": 0, "tool_name": "test_read", "status": "completed", "attempts": 1}),
        ]
    );
    for text in [
        "research",
        code,
        "document_too_long",
        "summarise-the-paper-",
    ] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
}
