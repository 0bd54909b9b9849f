//! Skills in whole turns: a skill that the model chooses and reads, and one that the agent does not have.

use std::{fs, path::Path};

use everturn_tests::{
    events::types,
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

/// Configuration with the skills of this repository, as docs/tools/skills.md shows it.
fn examples() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples/skills")
        .canonicalize()
        .unwrap();
    folder.display().to_string()
}

#[tokio::test]
async fn a_skill_is_matched_and_its_file_read() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("").call("skill__incident-report", &json!({})),
        1 => Reply::text("").call(
            "skill__incident-report",
            &json!({"file": "references/template.md"}),
        ),
        _ => Reply::text("Here is the report."),
    });
    let agent = format!("skills = [\"*\"]\n[skills]\npaths = [{:?}]\n", examples());
    let stack = Stack::with_agent(model.await, &agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack
        .ask("The shop was down from 10 to 11. Write it up.")
        .await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message thought act skill_matched skill_execution_start skill_execution_complete observe \
         thought act observe assistant_message complete"
    );
    let act = &events[2]["event_data"];
    for event in &events[3..6] {
        assert_eq!(event["event_data"]["skill_name"], "incident-report");
        assert_eq!(event["event_data"]["execution_id"], act["execution_id"]);
    }
    assert_eq!(events[5]["event_data"]["is_cut"], false);

    let requests = stack.model.requests();
    let offered = requests[0].body["tools"].as_array().unwrap();
    assert_eq!(offered.len(), 1);
    assert_eq!(offered[0]["function"]["name"], "skill__incident-report");
    assert!(
        offered[0]["function"]["description"]
            .as_str()
            .unwrap()
            .contains("Use it when something broke")
    );
    let instructions: Value = serde_json::from_str(&requests[1].last("tool")).unwrap();
    assert!(
        instructions["text"]
            .as_str()
            .unwrap()
            .starts_with("# Incident report")
    );
    assert_eq!(instructions["files"], json!(["references/template.md"]));
    assert!(
        requests[2]
            .last("tool")
            .contains("What helped, what did not")
    );

    let timeline = stack
        .get(&format!("/conversations/{conversation}/messages"))
        .await;
    assert!(
        !timeline.to_string().contains("skill_matched"),
        "the timeline shows the tool calls"
    );
}

#[tokio::test]
async fn an_agent_cannot_use_a_skill_it_does_not_have_and_a_broken_one_stops_nothing() {
    let model = Model::start(|request: &Request| match request.results_since_user() {
        0 => Reply::text("")
            .call("skill__other", &json!({}))
            .call("skill__broken", &json!({})),
        _ => Reply::text("I do not have it."),
    });
    let agent = "skills = [\"mine\", \"broken\"]\n[skills]\npaths = [\"skills\"]\n";
    let stack = Stack::with_agent(model.await, agent).await;
    for (name, text) in [
        ("mine", "---\nname: mine\ndescription: Mine.\n---\nDo mine."),
        (
            "other",
            "---\nname: other\ndescription: Other.\n---\nSecret of others.",
        ),
        ("broken", "No front matter."),
    ] {
        fs::create_dir_all(stack.path("skills").join(name)).unwrap();
        fs::write(stack.path("skills").join(name).join("SKILL.md"), text).unwrap();
    }
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("Use the other one.").await;
    let events = stack.ended(&conversation, 1).await;
    let observes: Vec<_> = events
        .iter()
        .filter(|event| event["event_type"] == "observe")
        .collect();
    assert_eq!(observes.len(), 2);
    assert!(
        observes
            .iter()
            .all(|observe| observe["event_data"]["is_error"] == true),
        "{observes:#?}"
    );
    assert!(!json!(events).to_string().contains("Secret of others"));
    assert_eq!(events.last().unwrap()["event_type"], "complete");
    let offered = &stack.model.requests()[0].body["tools"];
    assert_eq!(offered.as_array().map(Vec::len), Some(1));
    let log = fs::read_to_string(stack.path("worker.log")).unwrap();
    assert!(
        log.contains("a skill is left out") && log.contains("broken/SKILL.md"),
        "{log}"
    );
}
