//! Tools of MCP servers that ask the person in the middle of a call: servers of the official SDK for Python, one of the newer
//! protocol, where a result asks, and one of the older protocol, where a request asks.

use std::fs;

use everturn_tests::{
    events::{assert_gap_free, count, data, error, result, types},
    mcp,
    stack::Stack,
    wait,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{calling, listed};
use crate::embedded::approvals::{answer, code, pending, try_answer};

/// The version of the protocol that a server speaks.
#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Newer,
    Older,
}

/// A stack whose agent calls one tool of the server, and the folder of the server.
struct Railway {
    stack: Stack,
    folder: TempDir,
}

impl Railway {
    /// `keys` are of the server's table, and `tables` follow it.
    async fn open(protocol: Protocol, tool: &str, keys: &str, tables: &str) -> Self {
        Self::offering("\"rail__*\"", protocol, tool, keys, tables).await
    }

    async fn offering(
        offered: &str,
        protocol: Protocol,
        tool: &str,
        keys: &str,
        tables: &str,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let python = match protocol {
            Protocol::Newer => vec![mcp::python("python").display().to_string()],
            Protocol::Older => mcp::older_python("1.12.4"),
        };
        let of_server = [mcp::script("asks.py"), folder.path().display().to_string()];
        let command = [python, of_server.to_vec()].concat();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let table = mcp::command("rail", &command, keys);
        let agent = format!("tools = [{offered}]\n{table}\n{tables}");
        let model = calling(vec![(format!("rail__{tool}"), json!({"train": 7}))]).await;
        Self {
            stack: Stack::with_agent(model, &agent).await,
            folder,
        }
    }

    fn noted(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Answers the question, and checks that the person was asked once and that the seat is booked once.
    async fn is_booked_once(&self, conversation: &str) {
        let call = self.asked(conversation, "Which day for train 7?").await;
        let given = json!({"decision": "approve", "answer": {"day": "Monday", "seats": 2}});
        let (status, body) = answer(&self.stack, conversation, &call, given).await;
        assert_eq!((status, &body["decision"]), (200, &json!("approved")));
        let events = self.stack.ended(conversation, 1).await;
        let asked = "act approval_requested approval_resolved observe assistant_message complete";
        assert!(types(&events).ends_with(asked), "{}", types(&events));
        let booked = "train 7 on Monday for 2";
        assert_eq!(result(&events, "rail__seat"), booked);
        assert_eq!(self.noted("booked"), [booked]);
        let resolved = data(&events, "approval_resolved")[0];
        assert_eq!(resolved["answer"], json!({"day": "Monday", "seats": 2}));
        assert_gap_free(&events);
    }

    /// Waits for the question with these words, and returns the waiting call.
    async fn asked(&self, conversation: &str, message: &str) -> Value {
        wait::until(&format!("the tool asks: {message}"), || async {
            let path = format!("/conversations/{conversation}/approvals");
            let list = self.stack.get(&path).await;
            let call = list["approvals"][0].clone();
            (call["question"]["message"] == message).then_some(call)
        })
        .await
    }
}

const ALL: &str = "questions = \"all\"";

/// A worker and a gateway die while the person thinks. The servers' processes die with the worker, and the newer protocol's
/// server no longer knows the state of the call.
async fn is_asked_and_booked_once(protocol: Protocol, keys: &str) {
    let rail = Railway::open(protocol, "seat", keys, "").await;
    let stack = &rail.stack;
    let (gateway, worker) = stack.start_with_one_worker().await;
    let (conversation, _) = stack.ask("go").await;
    let call = rail.asked(&conversation, "Which day for train 7?").await;
    let properties = &call["question"]["schema"]["properties"];
    assert_eq!(properties["seats"]["maximum"], 8, "{call}");
    worker.kill().await;
    gateway.kill().await;
    let (_gateway, _worker) = stack.start_with_one_worker().await;
    let call = rail.asked(&conversation, "Which day for train 7?").await;
    let wrong = json!({"decision": "approve", "answer": {"day": 7}});
    let refused = try_answer(stack, &conversation, &call, wrong).await;
    assert_eq!(code(&refused), (400, "invalid_body"), "{refused:?}");
    let edit = json!({"decision": "approve", "tool_input": {"train": 8}});
    let refused = try_answer(stack, &conversation, &call, edit).await;
    assert_eq!(code(&refused), (400, "invalid_body"), "{refused:?}");
    rail.is_booked_once(&conversation).await;
}

#[tokio::test]
async fn a_result_of_the_newer_protocol_asks_and_the_turn_waits_without_a_worker() {
    is_asked_and_booked_once(Protocol::Newer, "").await;
}

#[tokio::test]
async fn a_request_of_the_older_protocol_asks_and_the_turn_waits_without_a_worker() {
    is_asked_and_booked_once(Protocol::Older, ALL).await;
}

/// The second question needs the first answer.
#[tokio::test]
async fn a_tool_asks_twice() {
    for (protocol, keys) in [(Protocol::Newer, ""), (Protocol::Older, ALL)] {
        let rail = Railway::open(protocol, "journey", keys, "").await;
        let stack = &rail.stack;
        let _running = stack.start_with_one_worker().await;
        let (conversation, _) = stack.ask("go").await;
        let first = rail.asked(&conversation, "Which day for train 7?").await;
        let day = json!({"decision": "approve", "answer": {"day": "Friday"}});
        assert_eq!(
            answer(stack, &conversation, &first, day.clone()).await.0,
            200
        );
        let second = rail.asked(&conversation, "Bread on Friday?").await;
        let late = try_answer(stack, &conversation, &first, day).await;
        assert_eq!(code(&late), (409, "approval_mismatch"), "{late:?}");
        let meal = json!({"decision": "approve", "answer": {"bread": true}});
        assert_eq!(answer(stack, &conversation, &second, meal).await.0, 200);
        let events = stack.ended(&conversation, 1).await;
        let booked = "train 7 on Friday for 1, bread True";
        assert_eq!(result(&events, "rail__journey"), booked);
        assert_eq!(rail.noted("booked"), [booked]);
        assert_eq!(count(&events, "approval_requested"), 2);
        assert_eq!(count(&events, "approval_resolved"), 2);
    }
}

/// The server learns that the person declined, and says what follows.
#[tokio::test]
async fn a_person_declines() {
    for (protocol, keys) in [(Protocol::Newer, ""), (Protocol::Older, ALL)] {
        let rail = Railway::open(protocol, "seat", keys, "").await;
        let stack = &rail.stack;
        let _running = stack.start_with_one_worker().await;
        let (conversation, _) = stack.ask("go").await;
        let call = rail.asked(&conversation, "Which day for train 7?").await;
        let body = json!({"decision": "deny", "reason": "not now"});
        let (status, body) = answer(stack, &conversation, &call, body).await;
        assert_eq!((status, &body["decision"]), (200, &json!("declined")));
        let events = stack.ended(&conversation, 1).await;
        let said = result(&events, "rail__seat");
        assert_eq!(said, "nothing is booked: decline", "{said}");
        let resolved = data(&events, "approval_resolved")[0];
        assert_eq!(
            (&resolved["decision"], &resolved["reason"]),
            (&json!("declined"), &json!("not now"))
        );
        assert!(rail.noted("booked").is_empty());
    }
}

/// A tool of the older protocol that must not run twice is not called again, unless the operator says that the server's
/// tools ask first. A server that may ask nobody learns so.
#[tokio::test]
async fn the_configuration_says_which_tools_ask() {
    let read = "effects = { seat = \"read\" }";
    for (protocol, keys, asks) in [
        (Protocol::Older, "", false),
        (Protocol::Older, read, true),
        (Protocol::Older, "questions = \"none\"", false),
        (Protocol::Newer, "questions = \"none\"", false),
    ] {
        let rail = Railway::open(protocol, "seat", keys, "").await;
        let stack = &rail.stack;
        let _running = stack.start_with_one_worker().await;
        assert!(listed(stack).await.contains(&"rail__seat".to_owned()));
        let (conversation, _) = stack.ask("go").await;
        if asks {
            rail.asked(&conversation, "Which day for train 7?").await;
            continue;
        }
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(count(&events, "approval_requested"), 0, "{keys}");
        assert!(rail.noted("booked").is_empty());
        assert!(rail.noted("began").len() <= 1, "{keys}");
    }
}

#[tokio::test]
async fn a_question_without_an_answer_in_time_ends_the_call() {
    let limits = "[worker]\nquestion_timeout = \"1s\"";
    let rail = Railway::open(Protocol::Newer, "seat", "", limits).await;
    let stack = &rail.stack;
    let _running = stack.start_with_one_worker().await;
    let (conversation, _) = stack.ask("go").await;
    let events = stack.ended(&conversation, 1).await;
    let said = error(&events, "rail__seat");
    assert!(said.contains("no person answered"), "{said}");
    assert_eq!(data(&events, "approval_resolved")[0]["decision"], "expired");
    assert!(rail.noted("booked").is_empty());
}

/// A call that needs an approval and then asks: two waits of one call, each with its own hash.
#[tokio::test]
async fn an_approved_call_asks() {
    let offered = "{ name = \"rail__seat\", approval = \"always\" }";
    let rail = Railway::offering(offered, Protocol::Newer, "seat", "", "").await;
    let stack = &rail.stack;
    let _running = stack.start_with_one_worker().await;
    let (conversation, _) = stack.ask("go").await;
    let call = &pending(stack, &conversation, 1).await[0];
    assert!(call["question"].is_null(), "{call}");
    let approve = json!({"decision": "approve"});
    assert_eq!(answer(stack, &conversation, call, approve).await.0, 200);
    let call = rail.asked(&conversation, "Which day for train 7?").await;
    let inbox = stack.get("/approvals").await;
    assert_eq!(inbox["approvals"][0]["question"], call["question"]);
    let (status, _) = stack
        .post(&format!("/conversations/{conversation}/cancel"), &json!({}))
        .await;
    assert!(status < 300, "{status}");
    let events = stack.ended(&conversation, 1).await;
    let decisions = data(&events, "approval_resolved");
    let decisions: Vec<_> = decisions.iter().map(|it| &it["decision"]).collect();
    assert_eq!(decisions, ["approved", "cancelled"]);
    assert!(rail.noted("booked").is_empty());
}

/// A worker dies around the save of the question. The person is asked once.
#[tokio::test]
async fn a_worker_dies_before_and_after_the_save_of_a_question() {
    for point in ["save.question.before", "save.question.after"] {
        let read = "effects = { seat = \"read\" }";
        let rail = Railway::open(Protocol::Newer, "seat", read, "").await;
        let stack = &rail.stack;
        let _gateway = stack.gateway().await;
        let worker = stack.worker_stopping_at(point);
        let (conversation, _) = stack.ask("go").await;
        stack.reached(point).await;
        worker.kill().await;
        let _worker = stack.worker();
        rail.is_booked_once(&conversation).await;
    }
}

/// The next run of the turn waits for the answer to the stored question.
#[tokio::test]
async fn a_waiting_turn_is_terminated_and_resumed_and_reset() {
    for ends_run in [true, false] {
        let rail = Railway::open(Protocol::Newer, "seat", "", "").await;
        let stack = &rail.stack;
        let _running = stack.start_with_one_worker().await;
        let (conversation, _) = stack.ask("go").await;
        rail.asked(&conversation, "Which day for train 7?").await;
        if ends_run {
            stack.terminate(&conversation).await;
            let resume = format!("/conversations/{conversation}/resume");
            assert_eq!(stack.post(&resume, &json!({})).await.0, 202);
        } else {
            stack.reset(&conversation).await;
        }
        rail.is_booked_once(&conversation).await;
    }
}
