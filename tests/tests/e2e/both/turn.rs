//! Turns in which nothing goes wrong.

use everturn_tests::{
    events::{data, types},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

/// Script of a model that calls two tools in parallel, then answers.
pub(crate) fn two_tools(request: &Request) -> Reply {
    if request.results_since_user() == 0 {
        Reply::text("I need two tools.")
            .call("calculate", &json!({"expression": "21 * 2"}))
            .call("current_time", &json!({"time_zone": "Asia/Tokyo"}))
    } else {
        Reply::text("It is 42 and late.")
    }
}

#[tokio::test]
async fn a_turn_with_two_tools_in_parallel() {
    let stack = Stack::new(Model::start(two_tools).await).await;
    let _running = stack.start().await;
    let (conversation, message) = stack
        .ask("What is 21 * 2, and what time is it in Tokyo?")
        .await;
    let events = stack.ended(&conversation, 1).await;

    let expected = "user_message thought act act observe observe assistant_message complete";
    assert_eq!(types(&events), expected);
    assert!(
        events
            .iter()
            .all(|event| event["message_id"] == message.as_str())
    );
    the_tools_ran_as_asked(&events);

    let requests = stack.model.requests();
    assert_eq!(requests.len(), 2);
    let roles: Vec<_> = requests[1].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].clone())
        .collect();
    assert_eq!(
        json!(roles),
        json!(["system", "user", "assistant", "tool", "tool"])
    );
    the_views_show_the_turn(&stack, &conversation).await;
}

fn the_tools_ran_as_asked(events: &[Value]) {
    let acts = data(events, "act");
    let tools: Vec<_> = acts.iter().map(|act| &act["tool_name"]).collect();
    assert_eq!(
        tools,
        ["calculate", "current_time"],
        "acts are in call order"
    );
    for act in acts {
        let id = act["execution_id"].as_str().unwrap();
        assert!(
            id.strip_prefix("exec_").is_some_and(|hex| hex.len() == 12),
            "{id}"
        );
        assert_eq!(act["status"], "running");
    }
    let observes = data(events, "observe");
    assert!(
        observes.iter().all(|observe| observe["is_error"] == false),
        "{events:#?}"
    );
    assert!(
        observes
            .iter()
            .any(|observe| observe["result"]["value"] == "42"),
        "{events:#?}"
    );
}

/// Checks the conversation's status and its timeline.
async fn the_views_show_the_turn(stack: &Stack, conversation: &str) {
    let status = stack
        .get(&format!("/conversations/{conversation}/execution-status"))
        .await;
    assert_eq!(
        status,
        json!({"is_running": false, "last_sequence": 8, "current_message_id": null, "model": null, "waiting": null})
    );
    let timeline = stack
        .get(&format!("/conversations/{conversation}/messages"))
        .await;
    let types: Vec<_> = timeline["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].clone())
        .collect();
    let expected = json!([
        "user_message",
        "thought",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "assistant_message"
    ]);
    assert_eq!(json!(types), expected);
}

#[tokio::test]
async fn two_messages_at_once_are_two_turns_in_order() {
    let model = Model::start(|request: &Request| {
        Reply::text(&format!("You said {}.", request.last("user")))
    })
    .await;
    let stack = Stack::new(model).await;
    let gateway = stack.gateway().await;
    let client = stack.client();
    let conversation = client.create_conversation(None).await.unwrap();
    for content in ["one", "two", "three"] {
        client.submit(&conversation, content, None).await.unwrap();
    }
    // All messages were accepted before any worker ran (invariant 9, accepted means durable).
    let status = stack
        .get(&format!("/conversations/{conversation}/execution-status"))
        .await;
    assert_eq!(
        (&status["is_running"], &status["last_sequence"]),
        (&json!(true), &json!(0))
    );
    let worker = stack.worker();
    let events = stack.ended(&conversation, 3).await;
    let texts = |event_type: &str| -> Vec<String> {
        let of_type = events
            .iter()
            .filter(|event| event["event_type"] == event_type);
        of_type
            .map(|event| event["event_data"]["content"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts("user_message"), ["one", "two", "three"]);
    assert_eq!(
        texts("assistant_message"),
        ["You said one.", "You said two.", "You said three."]
    );
    let context = &stack.model.requests()[1].body["messages"];
    assert_eq!(
        context.as_array().unwrap().len(),
        4,
        "the second turn knows the first, and not the third: {context}"
    );
    drop((gateway, worker));
}

#[tokio::test]
async fn a_repeated_post_is_one_message() {
    let stack = Stack::new(Model::start(|_: &Request| Reply::text("Once.")).await).await;
    let _running = stack.start().await;
    let client = stack.client();
    let conversation = client.create_conversation(None).await.unwrap();
    let first = client
        .submit(&conversation, "hello", Some("from-the-client"))
        .await
        .unwrap();
    let again = client
        .submit(&conversation, "hello", Some("from-the-client"))
        .await
        .unwrap();
    stack.ended(&conversation, 1).await;
    let much_later = client
        .submit(&conversation, "hello", Some("from-the-client"))
        .await
        .unwrap();
    assert_eq!((&first, &first), (&again, &much_later));
    stack.workflow_status(&conversation, "COMPLETED").await;
    assert_eq!(stack.ended(&conversation, 1).await.len(), 3);
    assert_eq!(stack.model.requests().len(), 1);
}

#[tokio::test]
async fn call_ids_are_made_unique() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => two_tools(request).with_call_id("same"),
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("two calls with one id").await;
    let events = stack.ended(&conversation, 1).await;
    let ids: Vec<_> = events
        .iter()
        .filter(|e| e["event_type"] == "act")
        .map(|e| &e["event_data"]["call_id"])
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], "same");
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_work_plan_leaves_its_events() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("").call(
            "work_plan",
            &json!({"action": "create", "title": "Tea", "steps": ["boil", "pour"]}),
        ),
        1 => {
            let created: Value = serde_json::from_str(&request.last("tool")).unwrap_or_default();
            let start =
                json!({"action": "start_step", "plan_id": created["plan_id"], "step_number": 1});
            Reply::text("").call("work_plan", &start)
        }
        _ => Reply::text("Done."),
    });
    let stack = Stack::new(model.await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("make tea").await;
    stack.ended(&conversation, 1).await;
    let types = stack.event_types(&conversation).await.join(" ");
    let expected = "user_message thought act work_plan observe thought act step_start observe assistant_message complete";
    assert_eq!(types, expected);
}

#[tokio::test]
async fn live_and_replayed_are_the_same() {
    let stack = Stack::new(Model::start(two_tools).await).await;
    let _running = stack.start().await;
    let (conversation, _) = stack
        .ask("What is 21 * 2, and what time is it in Tokyo?")
        .await;
    let live = stack
        .frames_until(&conversation, 0, |frame| frame.event == "complete")
        .await;
    let replayed = stack
        .frames_until(&conversation, 0, |frame| frame.event == "complete")
        .await;
    let persisted = |frames: &[everturn_client::Frame]| -> Vec<(u32, Value)> {
        frames
            .iter()
            .filter_map(|frame| Some((frame.id?, frame.data.clone())))
            .collect()
    };
    assert_eq!(persisted(&live), persisted(&replayed));
    assert_eq!(persisted(&replayed).len(), 8);
}

#[tokio::test]
async fn sigterm_lets_a_turn_move_on() {
    let model = Model::start(|request: &Request| match request.number {
        1 => Reply::text("Half of ").held(),
        _ => Reply::text("All of it."),
    });
    let stack = Stack::new(model.await).await;
    fs_append(&stack, "\n[worker]\ngraceful_shutdown = \"1s\"\n");
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    assert_eq!(
        worker.terminate().await,
        Some(0),
        "the worker ends by itself"
    );
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    let types: Vec<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["user_message", "assistant_message", "complete"]);
    assert_eq!(events[1]["event_data"]["content"], "All of it.");
}

fn fs_append(stack: &Stack, text: &str) {
    let path = stack.path("everturn.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, config + text).unwrap();
}
