//! `everturn chat` under tmux: what a person sees, and what keys do.

use std::{fs, os::unix::fs::PermissionsExt};

use everturn_tests::{
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use super::tmux::Window;
use crate::embedded::approvals::{ASKING, one_call, pending};

/// Waits until the terminal shows the answer that the model writes to the last of a number of requests.
async fn writes(window: &Window, stack: &Stack, requests: usize, text: &str) {
    stack.asked(requests).await;
    window.sees(text).await;
}

/// How often a text is on the screen.
fn count(screen: &str, text: &str) -> usize {
    screen.matches(text).count()
}

#[tokio::test]
async fn tools_spin_in_their_places_and_the_answer_is_rendered() {
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("I look at both.")
            .call("test_read", &json!({"sleep_ms": 4000}))
            .call("test_read", &json!({"sleep_ms": 1})),
        _ => Reply::text(
            "## Found\n\n- **one** `two`\n\n| a | b |\n|---|---|\n| 1 | 你好 |\n\nThe end",
        ),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    window.line("look").await;

    // The second call is done while the first one still spins, above it.
    let is_spinning =
        |row: &&str| row.contains("test_read {\"sleep_ms\":4000}") && !row.contains('✓');
    let spinner = |screen: &str| {
        screen
            .lines()
            .find(is_spinning)
            .and_then(|row| row.chars().next())
    };
    let screen = window.shows("a quick call below a slow one", |screen| {
        spinner(screen).is_some() && screen.contains("✓ test_read {\"sleep_ms\":1}")
    });
    let screen = screen.await;
    let first = spinner(&screen);
    window
        .shows("another picture of the spinner", |screen| {
            spinner(screen).is_some() && spinner(screen) != first
        })
        .await;

    let screen = window.sees("✓ done · 2 steps · ").await;
    assert!(
        screen.contains("✓ test_read {\"sleep_ms\":4000}  4."),
        "{screen}"
    );
    assert!(
        screen.contains("\nI look at both.\n") && count(&screen, "you> look") == 1,
        "{screen}"
    );
    assert!(
        screen.contains("\nFound\n\n• one two\n\na │ b\n──┼─────\n1 │ 你好\n\nThe end\n"),
        "{screen}"
    );
    assert_eq!(count(&screen, "Found"), 1, "{screen}");
    assert!(screen.contains("20 + 10 tokens"), "{screen}");
    assert!(window.painted().await.contains("\u{1b}[1m"), "bold is bold");
    window.press("C-d").await;
    let screen = window.sees("exit code 0").await;
    assert!(
        screen.contains("go on with: everturn chat --conversation "),
        "{screen}"
    );
}

#[tokio::test]
async fn an_answer_streams_and_a_long_one_scrolls_away_whole() {
    let long: Vec<_> = (0..60).map(|n| format!("Paragraph number {n}.")).collect();
    let long = long.join("\n\n");
    let script = move |request: &Request| match request.last("user").as_str() {
        "long" => Reply::text(&long).held(),
        _ => Reply::text("# Half\n\nof **it").held(),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    window.line("go").await;
    let screen = window.sees("of **it").await;
    assert!(
        screen.contains("\nHalf\n\nof **it\n"),
        "a block that is complete is rendered: {screen}"
    );
    stack.model.release();
    window.sees("✓ done").await;
    window.line("long").await;
    window.sees("Paragraph number 59.").await;
    stack.model.release();
    window
        .shows("two ends", |screen| screen.contains("✓ done"))
        .await;
    let all = window.all().await;
    for n in 0..60 {
        assert_eq!(
            count(&all, &format!("Paragraph number {n}.")),
            1,
            "{n}: {all}"
        );
    }
}

#[tokio::test]
async fn keys_answer_approvals() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let editor = stack.directory().join("editor");
    fs::write(
        &editor,
        "#!/bin/sh\ncp \"$1\" seen\necho '{\"effect\": true, \"sleep_ms\": 1}' > \"$1\"\n",
    )
    .unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let editor = editor.to_str().unwrap().to_owned();
    let (conversation, _) = stack.ask("before").await;
    let window = Window::chat(
        &stack,
        &["--conversation", &conversation],
        &[("EDITOR", &editor)],
    )
    .await;

    // It began before the chat, and goes on here.
    let screen = window.sees("◆ test_once? a approve").await;
    assert!(
        screen.contains("you> before") && screen.contains("{\"effect\":true}"),
        "{screen}"
    );
    assert_eq!(stack.effects().len(), 0);
    window.press("a").await;
    let screen = window.sees("✓ done").await;
    assert!(screen.contains("· approved"), "{screen}");
    assert_eq!(stack.effects().len(), 1);

    window.line("denied").await;
    window.sees("you> denied").await;
    answers(&window, "d").await;
    window.sees("· denied").await;
    stack.ended(&conversation, 2).await;
    assert_eq!(stack.effects().len(), 1);

    window.press("C-l").await;
    window.line("edited").await;
    answers(&window, "e").await;
    window.sees("with another input").await;
    stack.ended(&conversation, 3).await;
    assert_eq!(stack.effects().len(), 2);
    let seen: Value =
        serde_json::from_slice(&fs::read(stack.directory().join("seen")).unwrap()).unwrap();
    assert_eq!(
        seen,
        json!({"effect": true}),
        "the editor had what the model wants"
    );

    // Another device answers first.
    window.line("elsewhere").await;
    window.sees("◆ test_once?").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let id = call["execution_id"].as_str().unwrap();
    let path = format!("/conversations/{conversation}/approvals/{id}");
    let deny = json!({"decision": "deny", "input_hash": call["input_hash"], "reason": "not today"});
    assert_eq!(stack.post(&path, &deny).await.0, 200);
    window.sees("test_once was answered elsewhere").await;
    let screen = window.sees(": not today").await;
    assert!(!screen.contains("a approve"), "{screen}");
    stack.ended(&conversation, 4).await;
}

/// Waits for the question, and presses a key that answers it.
pub(super) async fn answers(window: &Window, key: &str) {
    let screen = window.sees("◆ test_once? ").await;
    if screen.contains("Tab, and then") {
        window.press("Tab").await;
        window.sees("◆ test_once? a approve").await;
    }
    window.press(key).await;
}

#[tokio::test]
async fn ctrl_c_clears_then_cancels_and_then_leaves() {
    let stack =
        Stack::new(Model::start(|_: &Request| Reply::text("Half an answer").held()).await).await;
    let (worker, _gateway) = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    window.sees("/help says").await;
    window.types("nothing").await;
    window.sees("you> nothing").await;
    window.press("C-c").await;
    window
        .shows("an empty line", |screen| !screen.contains("nothing"))
        .await;
    window.press("C-c").await;
    window
        .shows("the hint", |screen| count(screen, "Ctrl-D leaves") == 2)
        .await;

    window.line("go").await;
    writes(&window, &stack, 1, "Half an answer").await;
    window.press("C-c").await;
    let screen = window.sees("■ cancelled").await;
    assert!(!screen.contains("exit code"), "{screen}");
    assert!(screen.contains("(the answer so far)"), "{screen}");

    // Nobody is there who could cancel it.
    window.line("more").await;
    stack.asked(2).await;
    worker.kill().await;
    window.press("C-c").await;
    window.sees("cancelling · Ctrl-C again leaves").await;
    window.press("C-c").await;
    window.sees("exit code 130").await;
    assert_eq!(
        window.says("#{cursor_flag}").await,
        "1",
        "the cursor is there again"
    );
}

#[tokio::test]
async fn hostile_texts_do_not_reach_the_terminal() {
    const HOSTILE: &str = "a\u{1b}]0;owned\u{7}b\u{1b}[2J\u{1b}[31mc\u{202e}d\u{9b}5n\r";
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text(HOSTILE).call("test_read", &json!({"sleep_ms": 1, "note": HOSTILE})),
        _ => Reply::text(&format!(
            "Safe: {HOSTILE}\n\n```{HOSTILE}\n{HOSTILE}\n```\n\n[{HOSTILE}](http://x)"
        )),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    let title = window.says("#{pane_title}").await;
    window.line("go").await;
    let screen = window.sees("✓ done").await;
    assert!(
        screen.contains("Safe: a⟨1B⟩]0;owned⟨7⟩b⟨1B⟩[2J"),
        "{screen}"
    );
    assert!(
        screen.contains("you> go"),
        "nothing cleared the screen: {screen}"
    );
    assert!(!screen.contains('\u{202e}'), "{screen}");
    assert_eq!(window.says("#{pane_title}").await, title);
}

#[tokio::test]
async fn it_fits_another_size_and_wide_characters() {
    let wide = "你好世界。".repeat(12);
    let answer = wide.clone();
    let stack = Stack::new(Model::start(move |_: &Request| Reply::text(&answer)).await).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    window.sees("/help says").await;
    window.types("你好，世界").await;
    window.sees("you> 你好，世界").await;
    assert_eq!(window.says("#{cursor_x}").await, "15");
    window.press("Left").await;
    window.press("BSpace").await;
    window.sees("you> 你好，界").await;
    window
        .types(" and a line that must break when the window is small")
        .await;
    // What is drawn while the size changes may be drawn for the size before.
    window.sees("when the window is small界").await;
    window.resize(30, 24).await;
    let screen = window
        .shows("a broken line", |screen| screen.contains("\n     "))
        .await;
    assert_eq!(count(&screen, "you> "), 1, "{screen}");
    window.resize(100, 30).await;
    let screen = window
        .sees("you> 你好， and a line that must break when the window is small界")
        .await;
    assert_eq!(count(&screen, "you> "), 1, "{screen}");
    window.resize(40, 24).await;
    window
        .shows("a broken line", |screen| screen.contains("\n     "))
        .await;
    window.press("Enter").await;
    let screen = window.sees("✓ done").await;
    let shown: String = screen
        .lines()
        .filter(|row| row.starts_with(['你', '好', '世', '界', '。']))
        .collect();
    assert_eq!(shown, wide, "{screen}");
}

#[tokio::test]
async fn it_connects_again_after_its_gateway_was_killed() {
    let script = |request: &Request| match request.last("user").as_str() {
        "first" => Reply::text("The first answer has words").held(),
        other => Reply::text(&format!("You said {other}.")),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let (_worker, gateway) = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    window.line("first").await;
    writes(&window, &stack, 1, "The first answer has").await;
    gateway.kill().await;
    window.sees("the connection is lost").await;
    window.sees("connecting again …").await;
    window.line("second").await;
    window.sees("you> second  (is being sent)").await;
    stack.model.release();
    let _gateway = stack.gateway().await;
    window.sees("the connection is back").await;
    let screen = window.sees("You said second.").await;
    let screen = if screen.contains("✓ done") {
        window.all().await
    } else {
        screen
    };
    for once in [
        "The first answer has words",
        "you> first",
        "You said second.",
    ] {
        assert_eq!(count(&screen, once), 1, "{once}: {screen}");
    }
    window
        .shows("the message once", |screen| {
            count(screen, "you> second") == 1
        })
        .await;
}

#[tokio::test]
async fn messages_are_typed_while_a_turn_runs_and_come_back_with_up() {
    let script = |request: &Request| match request.last("user").as_str() {
        "first" if request.results_since_user() == 0 => Reply::text("I work.").held(),
        other => Reply::text(&format!("You said {other}.")),
    };
    let stack = Stack::new(Model::start(script).await).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    window.line("first").await;
    writes(&window, &stack, 1, "I work.").await;
    window.paste("two\nlines").await;
    window.sees("you> two\n     lines").await;
    window.press("Enter").await;
    window.sees("you> two  (waits for its turn)").await;
    window.line("/nonsense").await;
    window.sees("/nonsense is not a command").await;
    window.line("/interrupt now").await;
    let screen = window.sees("You said now.").await;
    assert!(screen.contains("■ cancelled"), "{screen}");
    window.sees("You said two lines.").await;
    window.line("/help").await;
    window.sees("joins the running turn").await;
    window.line("/quit").await;
    window.sees("exit code 0").await;

    let window = Window::chat(&stack, &[], &[]).await;
    window.sees("/help says").await;
    for _ in 0..5 {
        window.press("Up").await;
    }
    window.sees("you> two\n     lines").await;
    window.press("Up").await;
    window.sees("you> first").await;
    let history = fs::metadata(stack.directory().join("chat_history")).unwrap();
    assert_eq!(history.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn tools_of_the_user_run_when_the_user_says_so() {
    let agent = "tools = [\"open_file\", \"ask_user\"]\n\n[client_tools.open_file]\ndescription = \"Reads.\"\n\n\
                 [client_tools.ask_user]\ndescription = \"Asks.\"\n";
    let script = |request: &Request| match request.results_since_user() {
        0 => Reply::text("I need you.").call(&request.last("user"), &json!({"path": "a.txt"})),
        _ => Reply::text(&format!("It says {}", request.last("tool"))),
    };
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &["--tool", "open_file=tee ran"], &[]).await;
    let ran = stack.directory().join("ran");

    window.line("open_file").await;
    let screen = window.sees("◆ open_file? ").await;
    assert!(
        screen.contains("with `tee ran`") && screen.contains("{\"path\":\"a.txt\"}"),
        "{screen}"
    );
    assert!(!ran.exists(), "nobody has allowed it");
    consents(&window, "n").await;
    window.sees("It says").await;
    assert!(!ran.exists(), "it was refused");
    window.line("open_file").await;
    window
        .shows("a second turn", |screen| {
            count(screen, "◆ open_file? ") == 1
        })
        .await;
    consents(&window, "y").await;
    window
        .shows("the result", |screen| screen.contains("It says {\"path\":"))
        .await;
    assert!(ran.exists());

    window.line("ask_user").await;
    window.sees("no --tool offers it").await;
    consents(&window, "r").await;
    window.line("forty two").await;
    window.sees("It says forty two").await;
    window.press("C-d").await;
    window.sees("exit code 0").await;

    fs::remove_file(&ran).unwrap();
    let window = Window::chat(
        &stack,
        &["--tool", "open_file=tee ran", "--yes-tools", "open_file"],
        &[],
    )
    .await;
    window.sees("exit code 0").await;
    assert!(ran.exists());
}

/// Gives the keys to the question, and presses one that answers it.
async fn consents(window: &Window, key: &str) {
    let screen = window.sees("? ").await;
    if screen.contains("Tab, and then") {
        window.press("Tab").await;
        window
            .shows("the keys", |screen| !screen.contains("Tab, and then"))
            .await;
    }
    window.press(key).await;
}

#[tokio::test]
async fn colours_can_be_left_out() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("`code`")).await).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &["hello"], &[]).await;
    window.sees("exit code 0").await;
    assert!(
        window.painted().await.contains("\u{1b}[33mcode"),
        "{}",
        window.painted().await
    );
    let window = Window::chat(&stack, &["hello"], &[("NO_COLOR", "1")]).await;
    window.sees("exit code 0").await;
    let painted = window.painted().await;
    let has_colour = (30..38).any(|colour| painted.contains(&format!("\u{1b}[{colour}m")));
    assert!(!has_colour && painted.contains("code"), "{painted}");
    let window = Window::chat(&stack, &["hello"], &[("TERM", "dumb")]).await;
    window.sees("exit code 0").await;
    let painted = window.painted().await;
    assert!(
        painted.contains("`code`") && !painted.contains('\u{1b}'),
        "{painted}"
    );
}
