//! A tree of sub-agents, three levels deep, as events, timeline, API, workflows and the model show it.

use everturn_proto::ids;
use everturn_tests::{
    events::{count, data},
    stack::Stack,
};
use serde_json::{Value, json};

use super::{agent_executions, answering, is, nothing_runs, stack, tree};
use crate::production::faults::{assembled, persisted};

#[tokio::test]
async fn a_tree_of_three_levels_is_one_order() {
    let stack = stack(tree(answering), "").await;
    let _running = stack.start().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let message = stack
        .client()
        .submit(&conversation, "Do much.", None)
        .await
        .unwrap();
    let root = ids::root_agent_execution_id(&conversation, &message);
    let is_last = |frame: &everturn_client::Frame| {
        frame.event == "complete" && frame.data["agent_execution_id"] == root.as_str()
    };
    let live = stack.frames_until(&conversation, 0, is_last).await;
    let events = stack.ended(&conversation, 1).await;
    let counts = [
        "sub_agent_start",
        "act",
        "observe",
        "assistant_message",
        "complete",
    ]
    .map(|t| count(&events, t));
    assert_eq!(counts, [6, 6, 6, 7, 7], "{events:#?}");
    assert_eq!(
        events.last().unwrap()["event_data"]["agent_execution_id"],
        root.as_str(),
        "the turn's own end is last"
    );
    assert!(
        events
            .iter()
            .all(|event| event["message_id"] == message.as_str())
    );
    let replayed = stack.frames_until(&conversation, 0, is_last).await;
    assert_eq!(
        persisted(&live),
        persisted(&replayed),
        "live and replayed differ"
    );
    assert_eq!(assembled(&live), assembled(&replayed));

    each_model_was_told_its_part(&stack);
    every_child_leads_to_the_root(&stack, &conversation, &root, &events).await;
    the_timeline_has_the_turn_whole(&stack, &conversation).await;
    nothing_runs(&stack, &conversation).await;

    stack.workflow_status(&conversation, "COMPLETED").await;
    let history = stack
        .temporal
        .history(&ids::workflow_id(&conversation))
        .await;
    let length = history["events"].as_array().unwrap().len();
    assert!(
        length <= 20 + 3 * 13,
        "{length} events for two steps and three sub-agents"
    );
    println!("a turn of two steps with three sub-agents: {length} history events");
}

/// Asserts that the model is asked once for each step, and that a parent is told the answers of its children, and not
/// how they came about.
fn each_model_was_told_its_part(stack: &Stack) {
    let calls = stack.model.requests().len();
    assert_eq!(calls, 2 + 3 * 2 + 3, "each step is asked for once");
    for request in stack
        .model
        .requests()
        .iter()
        .filter(|request| !is(request, "helper") && !is(request, "lead"))
    {
        assert!(
            !request.body.to_string().contains("Helper did"),
            "the parent does not see what its children's do"
        );
    }
    let last = &stack.model.requests()[calls - 1].body["messages"];
    let results: Vec<_> = last
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    for (result, task) in results.iter().zip(["one", "two", "three"]) {
        assert!(
            result["content"]
                .to_string()
                .contains(&format!("Lead did {task}.")),
            "in call order: {results:?}"
        );
    }
}

/// Asserts that each agent execution leads through its tool call to its parent, up to the turn's own.
async fn every_child_leads_to_the_root(
    stack: &Stack,
    conversation: &str,
    root: &str,
    events: &[Value],
) {
    let agent_executions = agent_executions(stack, conversation).await;
    assert_eq!(agent_executions.len(), 7);
    for execution in &agent_executions {
        assert_eq!(
            (&execution["status"], &execution["root_execution_id"]),
            (&json!("completed"), &json!(root))
        );
        let mut place = execution;
        // Go from each child, through its tool call, to its parent.
        while let Some(parent) = place["parent_execution_id"].as_str() {
            let act = data(events, "act").into_iter().find(|act| {
                act["execution_id"] == place["parentActToolCall"]["execution_id"]
                    && act["agent_execution_id"] == parent
                    && act["call_id"] == place["parentActToolCall"]["call_id"]
            });
            assert_eq!(
                act.unwrap()["tool_input"],
                place["parentActToolCall"]["tool_input"]
            );
            place = agent_executions
                .iter()
                .find(|execution| execution["id"] == parent)
                .unwrap();
        }
        assert_eq!(place["id"], root);
        let id = execution["id"].as_str().unwrap();
        let one = stack
            .get(&format!("/conversations/{conversation}/executions/{id}"))
            .await;
        let mut one = one;
        let only_here = ["step_usage", "checkpoints", "tool_executions"];
        let [steps, checkpoints, tools] =
            only_here.map(|field| one.as_object_mut().unwrap().remove(field).unwrap());
        assert_eq!(steps.as_array().unwrap().len(), execution["steps"]);
        the_records_tell_what_happened(execution, &checkpoints, &tools);
        assert_eq!(&one, execution);
    }
}

/// Asserts that each reply has its checkpoint, that each tool has one before and one after, and that the tools were run
/// once.
fn the_records_tell_what_happened(execution: &Value, checkpoints: &Value, tools: &Value) {
    let (checkpoints, tools) = (checkpoints.as_array().unwrap(), tools.as_array().unwrap());
    let count = |wanted: &str| checkpoints.iter().filter(|it| it["type"] == wanted).count();
    assert_eq!(count("llm_complete"), execution["steps"], "{checkpoints:?}");
    for around in ["tool_start", "tool_complete"] {
        assert_eq!(count(around), tools.len(), "{checkpoints:?}");
    }
    for tool in tools {
        assert_eq!(
            (&tool["status"], &tool["attempts"], &tool["approval"]),
            (&json!("completed"), &json!(1), &Value::Null),
            "{tool}"
        );
    }
}

async fn the_timeline_has_the_turn_whole(stack: &Stack, conversation: &str) {
    let conversation_row = stack.get(&format!("/conversations/{conversation}")).await;
    assert_eq!(
        conversation_row["message_count"], 2,
        "sub-agents' messages do not count"
    );
    let timeline = stack
        .get(&format!("/conversations/{conversation}/messages"))
        .await;
    let items = timeline["timeline"].as_array().unwrap();
    let own: Vec<_> = items
        .iter()
        .filter(|item| item.get("parentToolCallId").is_none())
        .collect();
    assert_eq!(
        own.len(),
        1 + 1 + 3 + 3 + 1,
        "the turn's own items are as without sub-agents: {own:#?}"
    );
    let call_ids: Vec<_> = items
        .iter()
        .filter_map(|item| item["callId"].as_str())
        .collect();
    for item in items
        .iter()
        .filter_map(|item| item["parentToolCallId"].as_str())
    {
        assert!(
            call_ids.contains(&item),
            "{item} is no call of the timeline"
        );
    }
}
