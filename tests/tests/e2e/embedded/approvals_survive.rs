//! Turns that wait for an approval while workers, gateways and workflows end and start again.

use everturn_proto::ids;
use everturn_tests::{
    events::{data, types},
    model::Model,
    stack::Stack,
    wait,
};
use serde_json::{Value, json};

use crate::embedded::approvals::{
    APPROVED_TURN, ASKING, answer, code, one_call, pending, try_answer,
};

fn yes() -> Value {
    json!({"decision": "approve"})
}

fn no() -> Value {
    json!({"decision": "deny"})
}

/// Asserts that the call ran once, as it was approved.
async fn ran_once(stack: &Stack, conversation: &str) {
    let events = stack.ended(conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    assert_eq!(
        data(&events, "observe")[0]["is_error"],
        false,
        "{events:#?}"
    );
    assert_eq!(stack.effects().len(), 1);
    assert_eq!(stack.model.requests().len(), 2, "no call is paid twice");
    stack.workflow_status(conversation, "COMPLETED").await;
}

#[tokio::test]
async fn the_worker_pool_and_the_gateway_are_stopped_and_started_again() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let (worker, gateway) = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    assert_eq!(
        worker.terminate().await,
        Some(0),
        "what waits does not hold a worker up"
    );
    assert_eq!(gateway.terminate().await, Some(0));
    let _gateway = stack.gateway().await;
    assert_eq!(pending(&stack, &conversation, 1).await[0], call);
    let nobody = try_answer(&stack, &conversation, &call, yes()).await;
    assert_eq!(code(&nobody), (503, "turn_unavailable"));
    let _worker = stack.worker();
    // The engine may have kept the first request and given it to the worker. Then this one comes second.
    let answered = answer(&stack, &conversation, &call, yes()).await;
    assert!(
        answered.0 == 200 || code(&answered) == (409, "approval_answered"),
        "{answered:?}"
    );
    ran_once(&stack, &conversation).await;
}

#[tokio::test]
async fn killed_before_the_answer_is_saved() {
    killed_at("save.approval.before").await;
}

/// Nobody is told that an answer was taken before it is stored: the run may end, and the next one asks again.
#[tokio::test]
async fn an_answer_is_taken_when_it_is_stored() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at("save.approval.before");
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let not_stored = (503, "turn_unavailable");
    let answered = async {
        let first = try_answer(&stack, &conversation, &call, yes()).await;
        assert_eq!(code(&first), not_stored);
        // The engine knows of the answer when the worker asks for more time for its save.
        let accepted = "WORKFLOW_EXECUTION_UPDATE_ACCEPTED";
        stack.has_in_history(&conversation, accepted, 1).await;
        for other in [yes(), json!({"decision": "deny"})] {
            let again = try_answer(&stack, &conversation, &call, other).await;
            assert_eq!(code(&again), not_stored);
        }
        stack.terminate(&conversation).await;
    };
    tokio::select! {
        () = answered => {}
        () = stack.stop_each_time("save.approval.before") => {}
    }
    worker.kill().await;
    let _worker = stack.worker();
    let resume = format!("/conversations/{conversation}/resume");
    assert_eq!(stack.post(&resume, &json!({})).await.0, 202);
    assert_eq!(pending(&stack, &conversation, 1).await[0], call);
    assert_eq!(answer(&stack, &conversation, &call, yes()).await.0, 200);
    ran_once(&stack, &conversation).await;
}

/// Asserts that the call was denied and never ran.
async fn never_ran(stack: &Stack, conversation: &str) {
    let events = stack.ended(conversation, 1).await;
    assert_eq!(types(&events), APPROVED_TURN);
    let resolved = &data(&events, "approval_resolved")[0];
    assert_eq!(resolved["decision"], "denied", "{events:#?}");
    assert_eq!(stack.effects().len(), 0);
    stack.workflow_status(conversation, "COMPLETED").await;
}

#[tokio::test]
async fn the_last_word_counts_when_no_worker_runs() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    assert_eq!(worker.terminate().await, Some(0));
    for word in [yes(), no()] {
        let nobody = try_answer(&stack, &conversation, &call, word).await;
        assert_eq!(code(&nobody), (503, "turn_unavailable"));
    }
    let _worker = stack.worker();
    // The engine may have kept the requests, or not. Then the person repeats the last word.
    let answered = answer(&stack, &conversation, &call, no()).await;
    assert!(
        answered.0 == 200 || code(&answered) == (409, "approval_answered"),
        "{answered:?}"
    );
    never_ran(&stack, &conversation).await;
}

/// The run has taken the first word already, and its worker dies before the save.
#[tokio::test]
async fn the_last_word_counts_until_an_answer_is_stored() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at("save.approval.before");
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let words = async {
        let not_stored = (503, "turn_unavailable");
        let first = try_answer(&stack, &conversation, &call, yes()).await;
        assert_eq!(code(&first), not_stored);
        let accepted = "WORKFLOW_EXECUTION_UPDATE_ACCEPTED";
        stack.has_in_history(&conversation, accepted, 1).await;
        let second = try_answer(&stack, &conversation, &call, no()).await;
        assert_eq!(code(&second), not_stored);
    };
    tokio::select! {
        () = words => {}
        () = stack.stop_each_time("save.approval.before") => {}
    }
    worker.kill().await;
    let _worker = stack.worker();
    never_ran(&stack, &conversation).await;
}

#[tokio::test]
async fn killed_after_the_answer_is_saved() {
    killed_at("save.approval.after").await;
}

/// Kills the worker while it saves the answer, and asserts that the answer is not asked for again.
async fn killed_at(failpoint: &str) {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at(failpoint);
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let harm = async {
        stack.reached(failpoint).await;
        worker.kill().await;
        stack.worker()
    };
    let (answered, _worker) = tokio::join!(answer(&stack, &conversation, &call, yes()), harm);
    assert!(
        answered.0 == 200 || code(&answered) == (409, "approval_answered"),
        "{answered:?}"
    );
    ran_once(&stack, &conversation).await;
}

#[tokio::test]
async fn its_workflow_is_terminated_and_resumed() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    stack.terminate(&conversation).await;
    assert_eq!(
        code(&try_answer(&stack, &conversation, &call, yes()).await),
        (409, "turn_not_running")
    );
    assert_eq!(
        stack
            .post(&format!("/conversations/{conversation}/resume"), &json!({}))
            .await
            .0,
        202
    );
    assert_eq!(
        pending(&stack, &conversation, 1).await[0],
        call,
        "it waits as before"
    );
    assert_eq!(answer(&stack, &conversation, &call, yes()).await.0, 200);
    ran_once(&stack, &conversation).await;
}

#[tokio::test]
async fn its_workflow_is_reset_while_it_waits_and_after() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    stack.reset(&conversation).await;
    assert_eq!(answer(&stack, &conversation, &call, yes()).await.0, 200);
    ran_once(&stack, &conversation).await;
    stack.reset(&conversation).await;
    ran_once(&stack, &conversation).await;
}

#[tokio::test]
async fn what_is_left_of_its_time_counts_after_a_resume() {
    let agent = r#"tools = [{ name = "test_once", approval = { timeout = "4s" } }]"#;
    let stack = Stack::with_agent(Model::start(one_call).await, agent).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    worker.kill().await;
    let workflow_id = ids::workflow_id(&conversation);
    stack.terminate(&conversation).await;
    let expired = answer(&stack, &conversation, &call, yes());
    let late = everturn_tests::wait::until("its time is over", || async {
        let refused = try_answer(&stack, &conversation, &call, yes()).await;
        (code(&refused) == (409, "approval_expired")).then_some(())
    });
    late.await;
    assert_eq!(
        code(&expired.await),
        (409, "approval_expired"),
        "with no worker, and nothing saved"
    );
    assert_eq!(
        stack
            .post(&format!("/conversations/{conversation}/resume"), &json!({}))
            .await
            .0,
        202
    );
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "approval_resolved")[0]["decision"], "expired");
    assert_eq!(stack.effects().len(), 0);
    let history = stack.temporal.history(&workflow_id).await.to_string();
    assert!(
        !history.contains(r#""startToFireTimeout":"4s""#),
        "the new run does not wait all of the time again"
    );
}

/// The engine hands over both answers in one workflow task, because nobody took the first one.
#[tokio::test]
async fn of_two_answers_in_one_task_one_counts() {
    let stack = Stack::with_agent(Model::start(one_call).await, ASKING).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    worker.kill().await;
    let answered = async |decision: &str| {
        wait::until(&format!("{decision} is answered"), || async {
            let body = json!({"decision": decision});
            let answer = answer(&stack, &conversation, &call, body).await;
            (answer.0 != 503).then_some(answer)
        })
        .await
    };
    let started = async { stack.worker() };
    let (yes, no, _next) = tokio::join!(answered("approve"), answered("deny"), started);
    stack.ended(&conversation, 1).await;
    let mut statuses = [yes.0, no.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{yes:?} {no:?}");
    assert_eq!(stack.effects().len(), usize::from(yes.0 == 200));
}

/// The engine hands over the cancel and the end of the approval's time in one workflow task.
#[tokio::test]
async fn a_cancel_comes_together_with_the_end_of_its_time() {
    let agent = r#"tools = [{ name = "test_once", approval = { timeout = "2s" } }]"#;
    let stack = Stack::with_agent(Model::start(one_call).await, agent).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("do it").await;
    pending(&stack, &conversation, 1).await;
    worker.kill().await;
    stack.client().cancel(&conversation).await.unwrap();
    let fired = "TIMER_FIRED";
    stack.has_in_history(&conversation, fired, 1).await;
    let _worker = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert!(types(&events).ends_with("cancelled"), "{events:#?}");
    assert_eq!(stack.effects().len(), 0);
    let workflow_id = ids::workflow_id(&conversation);
    let history = stack.temporal.history(&workflow_id).await.to_string();
    assert!(!history.contains("WORKFLOW_TASK_FAILED"), "{history}");
}
