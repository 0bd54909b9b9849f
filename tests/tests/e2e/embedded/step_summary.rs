//! The end of a turn whose steps are used up: the model is asked for a summary, which is kept.

use everturn_tests::{
    events::{contents, count, data, observe, types},
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};

const SUMMARY: &str = "I have added twice, and found 2.";
const AGENT: &str = "llm_timeout = \"1h\"\ntools = [\"calculate\"]\nmax_steps = 2\n";

fn is_asked_for_summary(request: &Request) -> bool {
    request.last("user").contains("used all the steps")
}

fn working(text: &str) -> Reply {
    Reply::text(text).call("calculate", &json!({"expression": "1 + 1"}))
}

/// Calls tools without end, and summarizes when it is asked to.
fn endless(request: &Request) -> Reply {
    if is_asked_for_summary(request) {
        Reply::text(SUMMARY)
    } else {
        working("Again.")
    }
}

fn messages(request: &Request) -> &Vec<Value> {
    request.body["messages"].as_array().unwrap()
}

fn assert_summarized(events: &[Value]) {
    let end = &events[events.len() - 2..];
    assert_eq!(types(end), "assistant_message error");
    let answer = data(end, "assistant_message")[0];
    assert_eq!(answer["content"], SUMMARY);
    assert_eq!(
        (&answer["finish"], &answer["partial"]),
        (&json!("step_limit"), &json!(false))
    );
    assert_eq!(data(end, "error")[0]["code"], "step_limit");
    assert_eq!(count(events, "observe"), 2);
}

#[tokio::test]
async fn the_model_summarizes_when_its_steps_are_used_up() {
    let stack = Stack::with_agent(Model::start(endless).await, AGENT).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("add").await;
    let events = stack.ended(&conversation, 1).await;
    assert_summarized(&events);
    let requests = stack.model.requests();
    assert_eq!(requests.len(), 3);
    let (last, summary) = (&requests[1], &requests[2]);
    // The tools stay, so that the request begins as the one before.
    assert_eq!(summary.body["tools"], last.body["tools"]);
    assert_eq!(summary.body["tool_choice"], "none");
    assert_eq!(last.body["tool_choice"], Value::Null);
    assert!(messages(summary).starts_with(messages(last)));
    // It is a step like any other.
    let path = format!("/conversations/{conversation}/executions");
    let executions = stack.get(&path).await["executions"].clone();
    let id = executions[0]["id"].as_str().unwrap();
    let shown = stack.get(&format!("{path}/{id}")).await;
    assert_eq!(shown["step_usage"].as_array().unwrap().len(), 3);
    // It is shown, and stands in the context of the next turn.
    let timeline = stack
        .get(&format!("/conversations/{conversation}/messages"))
        .await;
    let items = timeline["timeline"].as_array().unwrap();
    let [.., summary, end] = items.as_slice() else {
        panic!("{timeline:#}")
    };
    assert_eq!(
        (&summary["content"], &summary["finish"]),
        (&json!(SUMMARY), &json!("step_limit"))
    );
    assert_eq!(
        (&end["type"], &end["code"]),
        (&json!("error"), &json!("step_limit"))
    );
    assert!(end["usage"]["inputTokens"].as_u64() > Some(0), "{end:#}");
    stack.workflow_status(&conversation, "FAILED").await;
    stack
        .send(&conversation, &json!({"content": "go on"}))
        .await;
    stack.ended(&conversation, 2).await;
    let next = &stack.model.requests()[3];
    assert!(next.body["messages"].to_string().contains(SUMMARY));
    assert!(
        !next.body["messages"]
            .to_string()
            .contains("used all the steps")
    );
}

#[tokio::test]
async fn the_summary_survives_its_worker() {
    // It dies while the model writes, and after the summary is stored.
    for (is_written, paid) in [(false, 4), (true, 3)] {
        let script = move |request: &Request| {
            let reply = endless(request);
            let is_held = !is_written && request.number == 3;
            if is_held { reply.held() } else { reply }
        };
        let stack = Stack::with_agent(Model::start(script).await, AGENT).await;
        let _gateway = stack.gateway().await;
        let worker = stack.worker_stopping_at("save.end.before");
        let (conversation, _) = stack.ask("add").await;
        if is_written {
            stack.reached("save.end.before").await;
        } else {
            stack.asked(3).await;
        }
        worker.kill().await;
        stack.model.release();
        let _next = stack.worker();
        assert_summarized(&stack.ended(&conversation, 1).await);
        assert_eq!(stack.model.requests().len(), paid);
    }
}

/// Whoever answers with the last step has answered.
#[tokio::test]
async fn an_answer_in_the_last_step_is_an_answer() {
    let script = |request: &Request| match request.results_since_user() {
        0 => working("One."),
        _ => Reply::text("It is 2."),
    };
    let stack = Stack::with_agent(Model::start(script).await, AGENT).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("add").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(contents(&events, "assistant_message"), ["It is 2."]);
    assert_eq!(count(&events, "complete"), 1);
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn without_a_summary_the_turn_ends_at_its_limit_all_the_same() {
    let calls_tools = |_: &Request| working("Again.");
    let fails = |request: &Request| {
        if is_asked_for_summary(request) {
            Reply::error(400, "bad_request")
        } else {
            working("Again.")
        }
    };
    for stack in [
        Stack::with_agent(Model::start(calls_tools).await, AGENT).await,
        Stack::with_agent(Model::start(fails).await, AGENT).await,
    ] {
        let _running = stack.start().await;
        let (conversation, _) = stack.ask("add").await;
        let events = stack.ended(&conversation, 1).await;
        assert_eq!(count(&events, "assistant_message"), 0, "{events:#?}");
        assert_eq!(data(&events, "error")[0]["code"], "step_limit");
        assert_eq!(count(&events, "act"), 2);
    }
}

#[tokio::test]
async fn a_budget_keeps_its_own_end() {
    let agent = format!("{AGENT}[agents.default.budget]\nsteps = 2\n");
    let stack = Stack::with_agent(Model::start(endless).await, &agent).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("add").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "error")[0]["code"], "budget_exhausted");
    assert_eq!(stack.model.requests().len(), 2);
}

#[tokio::test]
async fn whoever_delegated_gets_the_summary() {
    let script = |request: &Request| {
        let is_helper = request.last("system") == "helper";
        match (is_helper, request.results_since_user()) {
            (true, _) => endless(request),
            (false, 0) => {
                Reply::text("").call("delegate", &json!({"agent": "helper", "task": "add"}))
            }
            (false, _) => Reply::text("Done."),
        }
    };
    let agents = format!(
        "tools = []\ndelegates = [\"helper\"]\n[agents.helper]\nprovider = \"scripted\"\nmodel = \"scripted\"\n\
         instructions = \"helper\"\n{AGENT}"
    );
    let stack = Stack::with_agent(Model::start(script).await, &agents).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("add").await;
    let events = stack.ended(&conversation, 1).await;
    let delegated = observe(&events, "delegate");
    assert_eq!(delegated["is_error"], true);
    let result = delegated["result"].as_str().unwrap();
    assert!(
        result.contains("(step_limit)") && result.ends_with(SUMMARY),
        "{result}"
    );
    assert_eq!(count(&events, "complete"), 1);
}
