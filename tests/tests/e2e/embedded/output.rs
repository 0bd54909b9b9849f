//! Answers that have to fit a schema: what is valid, what is mended once, and what ends the turn.

use everturn_tests::{
    events::{contents, data, observe, types},
    model::{Model, Reply, Request},
    reader::{CursorIn, Cut, Left, Reader},
    stack::Stack,
};
use serde_json::{Value, json};

const SCHEMA: &str = "schema = { type = \"object\", properties = { n = { type = \"integer\" } }, required = [\"n\"] }\n";
const VALID: &str = "{\"n\": 42}";
const INVALID: &str = "It is forty-two.";

/// The places at which a worker is killed, from the invalid answer to the repair.
const PLACES: [&str; 4] = [
    "think.before_checkpoint",
    "think.after_checkpoint",
    "save.cut_reply.before",
    "save.cut_reply.after",
];

fn agent(keys: &str) -> String {
    format!("llm_timeout = \"1h\"\ntools = []\n{keys}\n[agents.default.output]\n{SCHEMA}")
}

/// True when the model was told in this request that its answer does not fit.
fn is_repair(request: &Request) -> bool {
    request
        .last("user")
        .contains("is not the answer that was asked for")
}

fn mends(request: &Request) -> Reply {
    Reply::text(if is_repair(request) { VALID } else { INVALID })
}

fn messages(request: &Request) -> &Vec<Value> {
    request.body["messages"].as_array().unwrap()
}

fn finishes(events: &[Value]) -> Vec<&Value> {
    let answers = data(events, "assistant_message");
    answers
        .into_iter()
        .map(|answer| &answer["finish"])
        .collect()
}

async fn answered(
    script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    agent: &str,
) -> (Stack, Vec<Value>) {
    let stack = Stack::with_agent(Model::start(script).await, agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("count").await;
    let events = stack.ended(&conversation, 1).await;
    (stack, events)
}

#[tokio::test]
async fn a_valid_answer_is_parsed() {
    let (stack, events) = answered(|_| Reply::text(VALID), &agent("")).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(contents(&events, "assistant_message"), [VALID]);
    assert_eq!(data(&events, "complete")[0]["output"], json!({"n": 42}));
    let format = &stack.model.requests()[0].body["response_format"];
    assert_eq!(format["json_schema"]["name"], "answer");
    assert_eq!(format["json_schema"]["schema"]["required"], json!(["n"]));
}

#[tokio::test]
async fn an_invalid_answer_is_mended_once_and_seen_as_it_was() {
    let stack = Stack::with_agent(Model::start(mends).await, &agent("")).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("count").await;
    let mut reader = Reader::new(&stack.http, &conversation);
    let left = reader
        .visit(&stack.url(), CursorIn::Query, &mut Cut::never(), |view| {
            view.turns_ended() == 1
        })
        .await
        .expect("no frame breaks a rule");
    assert!(matches!(left, Left::Satisfied));
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message assistant_message assistant_message complete"
    );
    assert_eq!(contents(&events, "assistant_message"), [INVALID, VALID]);
    assert_eq!(finishes(&events), ["invalid_output", "stop"]);
    assert_eq!(data(&events, "complete")[0]["output"], json!({"n": 42}));
    let told = stack.model.requests()[1].last("user");
    assert!(told.contains("is not JSON"), "{told}");
    // A reset saves the same again, and asks nothing again.
    stack.reset(&conversation).await;
    stack.workflow_status(&conversation, "COMPLETED").await;
    assert_eq!(stack.events(&conversation).await, events);
    assert_eq!(stack.model.requests().len(), 2);
    // The next turn is sent what this one was.
    stack
        .send(&conversation, &json!({"content": "again"}))
        .await;
    stack.ended(&conversation, 2).await;
    let requests = stack.model.requests();
    assert!(messages(&requests[2]).starts_with(messages(&requests[1])));
}

/// Also with kill -9 between the invalid answer and the repair, there is one repair, and no answer is paid twice that was
/// stored.
#[tokio::test]
async fn there_is_one_repair_whatever_dies() {
    for place in PLACES {
        let model = Model::start(|_: &Request| Reply::text(INVALID)).await;
        let stack = Stack::with_agent(model, &agent("")).await;
        let _gateway = stack.gateway().await;
        let worker = stack.worker_stopping_at(place);
        let (conversation, _) = stack.ask("count").await;
        stack.reached(place).await;
        worker.kill().await;
        let _next = stack.worker();
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(
            types(&events),
            "user_message assistant_message assistant_message error",
            "{place}"
        );
        assert_eq!(finishes(&events), ["invalid_output", "invalid_output"]);
        let error = data(&events, "error")[0];
        assert_eq!(error["code"], "llm_output_invalid");
        assert!(error["message"].as_str().unwrap().contains("is not JSON"));
        let cut = usize::from(place == "think.before_checkpoint");
        assert_eq!(stack.model.requests().len(), 2 + cut, "{place}");
    }
}

#[tokio::test]
async fn without_a_step_left_an_invalid_answer_ends_the_turn() {
    let agent = agent("max_steps = 1");
    let stack = Stack::with_agent(Model::start(mends).await, &agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("count").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message error");
    assert_eq!(data(&events, "error")[0]["code"], "llm_output_invalid");
    assert_eq!(stack.model.requests().len(), 1);
    let listed = stack
        .get(&format!("/conversations/{conversation}/executions"))
        .await;
    assert_eq!(listed["executions"][0]["status"], "failed");
    assert_eq!(listed["executions"][0]["error_code"], "llm_output_invalid");
    // The engine shows it, too.
    stack.workflow_status(&conversation, "FAILED").await;
}

/// An answer that was cut is invalid, and does not go on where it was cut.
#[tokio::test]
async fn a_cut_answer_is_given_anew() {
    let script = |request: &Request| {
        if is_repair(request) {
            Reply::text(VALID)
        } else {
            Reply::text("{\"n\": 4").at_limit()
        }
    };
    let (_, events) = answered(script, &agent("on_cut_reply = \"continue\"")).await;
    assert_eq!(finishes(&events), ["invalid_output", "stop"]);
    assert_eq!(data(&events, "complete")[0]["output"], json!({"n": 42}));
}

#[tokio::test]
async fn a_sub_agents_result_is_checked_too() {
    let script = |request: &Request| {
        let (is_helper, results) = (
            request.last("system") == "helper",
            request.results_since_user(),
        );
        match (is_helper, results) {
            (true, _) => mends(request),
            (false, 0) => {
                Reply::text("").call("delegate", &json!({"agent": "helper", "task": "count"}))
            }
            (false, _) => Reply::text("Done."),
        }
    };
    let agents = format!(
        "tools = []\ndelegates = [\"helper\"]\n[agents.helper]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
         instructions = \"helper\"\n[agents.helper.output]\n{SCHEMA}"
    );
    let (stack, events) = answered(script, &agents).await;
    assert_eq!(observe(&events, "delegate")["result"], json!({"n": 42}));
    assert_eq!(finishes(&events), ["invalid_output", "stop", "stop"]);
    assert_eq!(data(&events, "complete")[1]["output"], Value::Null);
    assert_eq!(stack.model.requests().len(), 4);
}
