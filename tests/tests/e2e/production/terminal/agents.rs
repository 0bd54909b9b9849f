//! What a person sees under tmux of plans, and the keys that answer for longer than one call.

use everturn_tests::{
    events::count,
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

use super::{chat::answers, tmux::Window};
use crate::embedded::approvals::{ASKING, one_call};

#[tokio::test]
async fn a_reason_is_typed_and_an_approval_is_for_always() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("first").await;
    let window = Window::chat(&stack, &["--conversation", &conversation], &[]).await;

    answers(&window, "D").await;
    window.sees("reason>").await;
    // Escape goes back to the question.
    window.types("wro").await;
    window.sees("reason> wro").await;
    window.press("Escape").await;
    answers(&window, "D").await;
    window.sees("reason>").await;
    window.types("not before noon").await;
    window.sees("reason> not before noon").await;
    let waiting = stack.events(&conversation).await;
    assert_eq!(count(&waiting, "approval_resolved"), 0);
    window.press("Enter").await;
    window.sees(": not before noon").await;
    stack.ended(&conversation, 1).await;
    assert_eq!(stack.effects().len(), 0);
    let told = stack.model.requests().last().unwrap().last("tool");
    assert!(told.contains("not before noon"), "the model reads: {told}");

    window.line("second").await;
    answers(&window, "A").await;
    stack.ended(&conversation, 2).await;
    assert_eq!(stack.effects().len(), 1);
    // It is not asked again.
    window.line("third").await;
    let events = stack.ended(&conversation, 3).await;
    assert_eq!(stack.effects().len(), 2);
    assert_eq!(count(&events, "approval_requested"), 2);
    let screen = window
        .shows("the end of the third turn", |screen| {
            let third = screen.split("you> third").nth(1);
            third.is_some_and(|rest| rest.contains("✓ done"))
        })
        .await;
    assert!(!screen.contains("◆ test_once?"), "{screen}");
}

/// The tools of an agent that plans, and asks before the one that has an effect.
const PLANNING: &str = r#"
tools = [{ name = "test_once", approval = "always" }, "work_plan"]
"#;

/// Works on a plan of two steps, and asks in each of them.
fn planning(request: &Request) -> Reply {
    let plan = |input: Value| Reply::text("Next.").call("work_plan", &input);
    let step = |action: &str, number: u32| json!({"action": action, "plan_id": plan_id(request), "step_number": number});
    let asking = || Reply::text("May I?").call("test_once", &json!({"effect": true}));
    match request.results_since_user() {
        0 => plan(
            json!({"action": "create", "title": "Picnic", "steps": ["Buy bread", "Find a meadow"]}),
        ),
        1 => plan(step("start_step", 1)),
        2 | 5 => asking(),
        3 => plan(step("end_step", 1)),
        4 => plan(step("start_step", 2)),
        6 => {
            let mut end = step("end_step", 2);
            end["status"] = "failed".into();
            plan(end)
        }
        _ => Reply::text("Half of it is done."),
    }
}

/// The id of the plan that was created.
fn plan_id(request: &Request) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    let results = messages.iter().filter(|it| it["role"] == "tool");
    let mut ids = results.filter_map(|it| {
        let result: Value = serde_json::from_str(it["content"].as_str()?).ok()?;
        Some(result["plan_id"].as_str()?.to_owned())
    });
    ids.next().unwrap_or_default()
}

#[tokio::test]
async fn a_plan_ticks_in_its_place() {
    let stack = Stack::with_agent(Model::start(planning).await, PLANNING).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    window.line("go").await;

    window
        .sees("Picnic\n  ▶ Buy bread\n  ☐ Find a meadow\n")
        .await;
    answers(&window, "a").await;
    let second = "Picnic\n  ☑ Buy bread\n  ▶ Find a meadow\n";
    let screen = window.sees(second).await;
    assert!(!screen.contains("▶ Buy bread"), "{screen}");
    answers(&window, "a").await;
    window.sees("Half of it is done.").await;
    window.sees("✓ done").await;
    let all = window.all().await;
    assert_eq!(
        all.matches("\n  ☑ Buy bread\n  ☒ Find a meadow\n").count(),
        1,
        "{all}"
    );
    assert_eq!(all.matches("Buy bread\n").count(), 1, "{all}");
}

/// Has two helpers at once. Each looks, calls a tool, and writes until it is released.
fn sharing(request: &Request) -> Reply {
    let (task, results) = (request.last("user"), request.results_since_user());
    match (request.last("system") == "helper", results) {
        (true, 0) => Reply::text("").call("test_read", &json!({"sleep_ms": 1})),
        (true, _) => Reply::text(&format!("Words about {task}.")).held(),
        (false, 0) => ["bread", "meadows"]
            .into_iter()
            .fold(Reply::text("I share this out."), |reply, task| {
                reply.call("delegate", &json!({"agent": "helper", "task": task}))
            }),
        (false, _) => Reply::text("All is found."),
    }
}

#[tokio::test]
async fn sub_agents_write_below_what_they_have_done() {
    let agents = "delegates = [\"helper\"]\n[agents.helper]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
                  instructions = \"helper\"\ntools = [\"test_read\"]";
    let stack = Stack::with_agent(Model::start(sharing).await, agents).await;
    let _running = stack.start().await;
    let window = Window::chat(&stack, &[], &[]).await;
    window.line("go").await;

    // Call, tool and text of each helper stand together, in this order, while both write.
    let below = |screen: &str, task: &str| {
        let mut rows = screen.lines();
        rows.any(|row| row.contains(&format!("Ask helper: {task}")))
            && rows
                .next()
                .is_some_and(|row| row.starts_with("  │ ✓ test_read"))
            && rows.any(|row| row == format!("  │ Words about {task}."))
    };
    stack.asked(5).await;
    let screen = window.shows("both helpers with what they write", |screen| {
        below(screen, "bread") && below(screen, "meadows")
    });
    let screen = screen.await;
    let ends = ["about bread", "helper: meadows"].map(|text| screen.find(text));
    assert!(ends[0] < ends[1], "{screen}");

    stack.model.release();
    window.sees("All is found.").await;
    window.sees("✓ done").await;
    let all = window.all().await;
    assert!(below(&all, "bread") && below(&all, "meadows"), "{all}");
    for text in [
        "Words about bread.",
        "Words about meadows.",
        "✓ Ask helper: bread",
    ] {
        assert_eq!(all.matches(text).count(), 1, "{text}: {all}");
    }
}
